//! Why there is no answer at all.

use crate::allocator::{AllocatorError, AllocatorKind};
use thiserror::Error;
use xmem_trace::ReadError;

/// An estimate that cannot be made. A job that does not fit is an answer, not an error.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The allocator's settings do not go with this trace.
    #[error(transparent)]
    Allocator(#[from] AllocatorError),
    /// A recording of the run was asked for, but the allocator has nothing of what one shows.
    #[error(
        "{} has no segments and blocks that a snapshot could show: choose another allocator for it",
        kind.name()
    )]
    NoSegments {
        /// The allocator.
        kind: AllocatorKind,
    },
    /// The iterations asked for are not in the trace.
    #[error(
        "iterations {from}..{to} were asked for, but the trace has {found}, counted from 0: choose \
         among those"
    )]
    NoSuchIteration {
        /// First iteration asked for.
        from: u32,
        /// The one after the last asked for.
        to: u32,
        /// Iterations in the trace.
        found: u32,
    },
}
