//! Estimators judged by many runs.

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod tables;
pub(crate) mod text;
