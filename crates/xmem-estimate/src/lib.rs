//! From a graph and the settings of a job to an answer: what `xmem estimate` and its page in a browser share.
//!
//! Three steps, so that a caller can keep what is expensive: [`Source::read`] gives the graph, [`JobSettings::workload`] decides
//! what is done with it, and a [`GraphJob`] is acted and estimated. No file is touched and no thread is started.
#![forbid(unsafe_code)]

mod error;
mod job;
mod loss;
mod settings;
mod source;
mod trace;

pub use error::GraphJobError;
pub use job::GraphJob;
pub use loss::LossChoice;
pub use settings::{JobSettings, Purpose, RankSettings};
pub use source::Source;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
