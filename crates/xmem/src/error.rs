//! Errors that prevent an answer.

use crate::input::InputError;
use thiserror::Error;
use xmem_orchestrator::{CompletionError, WhatIfError};
use xmem_predict::{AllocatorError, LengthsError, NoSegments};

/// An estimate that cannot be made. A job that does not fit is an answer, not an error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// The trace or snapshot could not be read.
    #[error(transparent)]
    Read(#[from] InputError),
    /// The allocator's settings do not go with this trace.
    #[error(transparent)]
    Allocator(#[from] AllocatorError),
    /// A snapshot of the run was requested, but the allocator has no segments to show.
    #[error(transparent)]
    NoSegments(#[from] NoSegments),
    /// The recording does not show how memory depends on the length of its batches.
    #[error(transparent)]
    Lengths(#[from] LengthsError),
    /// The job cannot be changed as requested.
    #[error(transparent)]
    WhatIf(#[from] WhatIfError),
    /// The recording does not show when work is complete.
    #[error(transparent)]
    Completion(#[from] CompletionError),
    /// The requested iterations are not in the trace.
    #[error(
        "iterations {from}..{to} were requested, but the trace has {found}, counted from 0: choose \
         among those"
    )]
    NoSuchIteration {
        /// First requested iteration.
        from: u32,
        /// The one after the last requested iteration.
        to: u32,
        /// Iterations in the trace.
        found: u32,
    },
}
