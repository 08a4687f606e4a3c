//! Why there is no answer about a trace.

use crate::complaint::Complaint;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use thiserror::Error;
use xmem::EstimateError;

/// Why there is no answer about a trace.
#[derive(Debug, Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Estimate(EstimateError),
    /// What was found below a folder cannot be looked at.
    #[error("cannot look into `{place}`: check that it may be read")]
    Folder { place: String, source: Arc<walkdir::Error> },
    /// A mistake of this program; it must not end the work on other traces.
    #[error("xmem made a mistake with `{trace}` and gave it up: please report it")]
    Panic { trace: String, told: Told },
}

/// What a panic said.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct Told(String);

/// Does `work` on `trace`, and survives a panic in it.
pub(super) fn guarded<T>(
    trace: &str,
    work: impl FnOnce() -> Result<T, EstimateError>,
) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(Failure::Estimate),
        Err(panic) => Err(Failure::Panic { trace: trace.to_owned(), told: told(&*panic) }),
    }
}

fn told(panic: &(dyn Any + Send)) -> Told {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Told(text.unwrap_or("a panic that says nothing").to_owned())
}

impl Failure {
    /// The same for the user.
    pub(super) fn complaint(self, trace: &str) -> Complaint {
        match self {
            Self::Estimate(error) => Complaint::estimate(trace, error),
            Self::Folder { place, source } => Complaint::Folder { place, source },
            Self::Panic { trace, told } => Complaint::Panic { trace, told: told.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn a_panic_is_a_failure_that_tells_what_it_said() {
        let formatted = guarded::<()>("t.json", || panic!("block {} is gone", 7));
        let plain = guarded::<()>("t.json", || panic!("gone"));
        for (failure, said) in [(formatted, "block 7 is gone"), (plain, "gone")] {
            let Err(Failure::Panic { told, .. }) = failure else { panic!("no failure") };
            assert_eq!(told.to_string(), said);
            assert!(told.source().is_none());
        }
    }
}
