//! The contents of a trace: text and `xmem.inspect/2`.

pub(crate) mod json;
pub(crate) mod text;
