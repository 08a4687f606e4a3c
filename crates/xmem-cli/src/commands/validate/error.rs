//! Estimates that cannot be compared with a recording.

use crate::commands::snapshot::RerunFailure;
use crate::error::CliError;
use crate::estimate;
use xmem::EstimateError;
use xmem_eval::ValidateError;

/// The error of an estimate of `trace` that cannot be compared with `snapshot`.
pub(super) fn failure(trace: &str, snapshot: &str, error: ValidateError) -> CliError {
    match error {
        ValidateError::Estimate(EstimateError::Allocator(error)) => error.into(),
        ValidateError::Estimate(error) => estimate::failure(trace, error),
        ValidateError::Recording(source) => RerunFailure::new(snapshot, source).into(),
    }
}
