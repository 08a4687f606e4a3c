//! The answer about one trace: in full, as a row of a table or of CSV, and as `xmem.replay/2`, which is also read.

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod largest;
pub(crate) mod read;
pub(crate) mod rules;
pub(crate) mod table;
pub(crate) mod text;
