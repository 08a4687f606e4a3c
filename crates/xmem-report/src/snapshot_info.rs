//! The contents of a memory snapshot: text and `xmem.snapshot-info/2`.

pub(crate) mod json;
pub(crate) mod text;
