//! Rows of CSV. Those of answers are in [`crate::lines`].

pub use crate::eval::csv::evaluation;
pub use crate::offload::csv::{offload, offload_series};
pub use crate::plan::csv::{plan, plan_series};
