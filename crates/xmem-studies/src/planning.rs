//! The distance between what an allocator takes and what a static plan needs: the blocks of a recording or of a list,
//! planned, and beside the plans what allocators do with the same blocks.
//!
//! [`PlanBlocks`] are the blocks to be placed. [`PlanSettings::compare`] runs planners and allocators on them; the
//! result is a [`PlanAnswer`].

mod allocators;
mod answer;
mod blocks;
mod breakdown;
mod fragmentation;
mod hints;
mod interruption;
mod iteration;
mod lists;

pub use allocators::{AllocatorRun, Placement, SegmentSpan};
pub use answer::{PlanAnswer, PlanSettings, PlannerOutcome};
pub use blocks::{BlockFacts, OutsideBlocks, PlanBlocks, PlanScope, PlanSource};
pub use breakdown::{Breakdown, BreakdownShare, DnnMemCategory, JobPeaks};
pub use fragmentation::{FragmentationSeries, PeakRequest};
pub use hints::{HintedAnswer, HintedFigures, HintedIteration, KeptPlan, KeptRequest};
pub use interruption::{InterruptedRun, Interruption, ParseInterruptionError};
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
    /// A plan that was kept has blocks that overlap.
    #[error("the plan is damaged")]
    Overlap(#[from] xmem_planner::Violation),
    /// The blocks make no list.
    #[error("the blocks cannot be planned")]
    List(#[from] xmem_planner::ListError),
}
