//! Lists of operations, and what a simulation of one gives: text, `xmem.simulate/1` and its lines.

mod entries;
pub(crate) mod json;
pub(crate) mod operations;
pub(crate) mod text;
