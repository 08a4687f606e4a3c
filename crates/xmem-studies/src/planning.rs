//! The distance between what an allocator takes and what a static plan needs: the blocks of a recording or of a list,
//! planned, and beside the plans what allocators do with the same blocks.
//!
//! [`PlanBlocks`] are the blocks to be placed. [`PlanSettings::compare`] runs planners and allocators on them; the
//! result is a [`PlanAnswer`].

mod allocators;
mod answer;
mod blocks;
mod breakdown;
mod dnnmem;
mod following;
mod fragmentation;
mod interruption;
mod iteration;
mod job_plan;
mod lists;

pub use crate::block_size::PlannedMemory;
pub use allocators::{AllocatorRun, Placement, SegmentSpan};
pub use answer::{PlanAnswer, PlanSettings, PlannerOutcome};
pub use blocks::{BlockFacts, OutsideBlocks, PlanBlocks, PlanScope, PlanSource};
pub use breakdown::{
    Breakdown, BreakdownShare, DnnMemCategory, JobPeaks, MemoryClasses, ShapeInference,
};
pub use dnnmem::{DnnMemEstimate, DnnMemPolicies, DnnMemPolicy, ParseDnnMemPolicyError};
pub use following::{FollowInput, FollowedAnswer, FollowedRequests};
pub use fragmentation::{FragmentationSeries, PeakRequest};
pub use interruption::{InterruptedRun, Interruption, ParseInterruptionError};
pub use job_plan::{Arena, JobPlace, JobPlan, JobRequest, PlanMark, RecordedJob};
pub use lists::PlanListError;

use thiserror::Error;

/// Blocks that cannot be planned.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanningError {
    /// The recording has no iteration.
    #[error(
        "no training iteration was found in the recording: add --scope all to plan all of its blocks"
    )]
    NoIteration,
    /// The planner has no plan.
    #[error("the blocks cannot be planned")]
    Refused(#[from] xmem_planner::Refused),
    /// The blocks make no list.
    #[error("the blocks cannot be planned")]
    List(#[from] xmem_planner::ListError),
}
