//! Settings that lower what a recorded job needs.

pub(crate) mod json;
pub(crate) mod text;
