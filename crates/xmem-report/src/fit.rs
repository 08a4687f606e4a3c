//! What makes a job fit.

pub(crate) mod json;
pub(crate) mod text;
