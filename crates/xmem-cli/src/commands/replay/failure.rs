//! Errors that leave a trace without an answer.

use crate::error::CliError;
use crate::guard::{self, Panicked};
use std::sync::Arc;
use thiserror::Error;
use xmem::EstimateError;

/// An error that leaves a trace without an answer.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Estimate(EstimateError),
    /// A folder, or an entry of a folder, that cannot be read.
    #[error("cannot read folder `{place}`: check its permissions")]
    Folder { place: String, source: Arc<walkdir::Error> },
    /// A panic. It must not end the work on other traces.
    #[error(
        "internal error while processing `{trace}`: {message}; this is a bug in xmem, please report it"
    )]
    Panic { trace: String, message: String },
}

/// Runs `work` on `trace`, and returns a panic in it as an error.
pub(super) fn catch_panic<T>(
    trace: &str,
    work: impl FnOnce() -> Result<T, EstimateError>,
) -> Result<T, Failure> {
    match guard::catch(work) {
        Ok(result) => result.map_err(Failure::Estimate),
        Err(Panicked { message }) => Err(Failure::Panic { trace: trace.to_owned(), message }),
    }
}

impl Failure {
    /// Converts to the error that is shown to the user.
    pub(super) fn into_cli_error(self, trace: &str) -> CliError {
        match self {
            Self::Estimate(error) => CliError::estimate(trace, error),
            Self::Folder { place, source } => CliError::Folder { place, source },
            Self::Panic { trace, message } => CliError::Panic { of: Some(trace), message },
        }
    }
}
