//! Rows of CSV. Those of answers are in [`crate::lines`].

pub use crate::offload::csv::{rows as offload, series as offload_series};
pub use crate::plan::csv::{fragmentation_series as plan_series, heap_map as plan};
