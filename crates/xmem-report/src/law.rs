//! The memory of a job as a function of a number in its command.

pub(crate) mod json;
pub(crate) mod text;
