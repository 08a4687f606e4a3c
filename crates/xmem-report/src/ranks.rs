//! The answer for a job of which several ranks were recorded: text and `xmem.ranks/1`.

pub(crate) mod json;
pub(crate) mod text;
