//! Errors that leave a trace without an answer.

use crate::error::CliError;
use crate::estimate;
use crate::guard::{self, InternalError, Panicked};
use crate::objects::ObjectsFailure;
use crate::traces::TracesFailure;
use std::sync::Arc;
use thiserror::Error;
use xmem::EstimateError;
use xmem_objects::ObjectsError;

/// An error that leaves a trace without an answer.
#[derive(Debug, Error)]
pub(super) enum TraceError {
    #[error(transparent)]
    Estimate(EstimateError),
    /// A folder, or an entry of a folder, that cannot be read.
    #[error("cannot read folder `{place}`: check its permissions")]
    Folder { place: String, source: Arc<walkdir::Error> },
    /// An object that cannot be copied.
    #[error("{0}")]
    Object(ObjectsError),
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
) -> Result<T, TraceError> {
    match guard::catch(work) {
        Ok(result) => result.map_err(TraceError::Estimate),
        Err(Panicked { message }) => Err(TraceError::Panic { trace: trace.to_owned(), message }),
    }
}

impl TraceError {
    /// The code of the error that is shown to the user.
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::Estimate(error) => estimate::code(error),
            Self::Folder { .. } => "XM0228",
            Self::Object(_) => "XM0916",
            Self::Panic { .. } => guard::CODE,
        }
    }

    /// Converts to the error that is shown to the user.
    pub(super) fn into_cli_error(self, trace: &str) -> CliError {
        match self {
            Self::Estimate(error) => estimate::failure(trace, error),
            Self::Folder { place, source } => TracesFailure::Folder { place, source }.into(),
            Self::Object(error) => ObjectsFailure::from(error).into(),
            Self::Panic { trace, message } => {
                InternalError::new(Some(&trace), Panicked { message }).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem::predict::AllocatorError;
    use xmem::trace::ReadError;

    #[test]
    fn documents_have_the_code_that_is_printed() {
        let input = || "a.json".to_owned();
        let errors = [
            TraceError::Estimate(EstimateError::Read(ReadError::Empty { input: input() }.into())),
            TraceError::Estimate(AllocatorError::Fraction { fraction: 2.0 }.into()),
            TraceError::Estimate(EstimateError::NoSuchIteration { from: 1, to: 2, found: 1 }),
            TraceError::Panic { trace: input(), message: "gone".to_owned() },
        ];
        for error in errors {
            let (code, text) = (error.code(), error.to_string());
            assert_eq!(error.into_cli_error("a.json").code(), code, "{text}");
        }
    }
}
