//! Memory plans: text, `xmem.plan/1`, rows of CSV and a picture, and `xmem.plan-hints/2`, a plan that is followed.

pub(crate) mod csv;
pub(crate) mod heap_map;
pub(crate) mod hints;
pub(crate) mod json;
pub(crate) mod text;
