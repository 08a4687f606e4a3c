//! Errors that leave a trace without an answer.

use crate::error::CliError;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
        "internal error while processing `{trace}`; this trace was skipped: please report this bug"
    )]
    Panic { trace: String, message: PanicMessage },
}

/// The message of a panic.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct PanicMessage(String);

/// Runs `work` on `trace`, and returns a panic in it as an error.
pub(super) fn catch_panic<T>(
    trace: &str,
    work: impl FnOnce() -> Result<T, EstimateError>,
) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(Failure::Estimate),
        Err(panic) => {
            Err(Failure::Panic { trace: trace.to_owned(), message: panic_message(&*panic) })
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> PanicMessage {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    PanicMessage(text.unwrap_or("panic without a message").to_owned())
}

impl Failure {
    /// Converts to the error that is shown to the user.
    pub(super) fn into_cli_error(self, trace: &str) -> CliError {
        match self {
            Self::Estimate(error) => CliError::estimate(trace, error),
            Self::Folder { place, source } => CliError::Folder { place, source },
            Self::Panic { trace, message } => {
                CliError::Panic { trace, message: message.to_string() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn a_panic_is_a_failure_with_its_message() {
        let formatted = catch_panic::<()>("t.json", || panic!("block {} is gone", 7));
        let plain = catch_panic::<()>("t.json", || panic!("gone"));
        for (failure, said) in [(formatted, "block 7 is gone"), (plain, "gone")] {
            let Err(Failure::Panic { message, .. }) = failure else { panic!("no failure") };
            assert_eq!(message.to_string(), said);
            assert!(message.source().is_none());
        }
    }
}
