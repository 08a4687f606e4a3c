//! Variants of a distributed job side by side: text and `xmem.variants/1`.

pub(crate) mod json;
pub(crate) mod text;
