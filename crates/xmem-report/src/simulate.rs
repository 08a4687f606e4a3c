//! Lists of operations, and what a simulation of one gives: text, `xmem.simulate/1` and its lines.

pub(crate) mod json;
pub(crate) mod operations;
mod results;
pub(crate) mod text;
