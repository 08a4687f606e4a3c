//! A replay of recorded requests: text and `xmem.snapshot-replay/2`.

pub(crate) mod json;
pub(crate) mod text;
