//! From a graph and the settings of a job to an answer: what `xmem estimate` and its page in a browser share.
//!
//! Three steps, so that a caller can keep what is expensive: [`read`] gives the graph, [`JobSettings::workload`] decides
//! what is done with it, and a [`GraphJob`] is acted and estimated. No file is touched and no thread is started.
#![forbid(unsafe_code)]

mod error;
mod job;
mod loss;
mod settings;

pub use error::GraphJobError;
pub use job::GraphJob;
pub use loss::LossChoice;
pub use settings::{JobSettings, Purpose};

use xmem_graph::GraphError;
use xmem_graph::pt2::{self, Archive};

/// Reads a graph, whose format is recognized by content.
///
/// # Errors
/// If it is no graph, or a damaged one.
pub fn read(bytes: &[u8]) -> Result<Archive, GraphError> {
    if pt2::is_archive(bytes) { pt2::read(bytes) } else { Err(GraphError::UnknownFormat) }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
