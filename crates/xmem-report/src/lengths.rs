//! The answer about lengths that vary: text and `xmem.lengths/1`.

pub(crate) mod json;
pub(crate) mod text;
