//! Offloading policies side by side: text, `xmem.offload/1` and rows of CSV.

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod text;
