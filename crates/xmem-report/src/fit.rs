//! What makes a job fit.

pub(crate) mod json;
pub(crate) mod kept;
pub(crate) mod text;
