//! Estimates that fail.

use crate::allocator::AllocatorFailure;
use crate::error::{CliError, failures};
use miette::Diagnostic;
use thiserror::Error;
use xmem::EstimateError;

failures! {
    /// An estimate that fails.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum EstimateFailure {
        #[error("cannot estimate `{trace}`")]
        Estimate { trace: String, source: EstimateError } => Usage,
    }
}

/// The error of a failed estimate of `trace`.
pub(crate) fn failure(trace: &str, error: EstimateError) -> CliError {
    match error {
        EstimateError::Read(read) => read.into(),
        EstimateError::Allocator(error) => AllocatorFailure::with(trace, error).into(),
        source => EstimateFailure::Estimate { trace: trace.to_owned(), source }.into(),
    }
}
