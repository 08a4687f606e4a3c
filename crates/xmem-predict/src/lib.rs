//! From the schedule of a job to its prediction: the schedule is replayed by the simulator's
//! allocator, and the result is the peaks with their range, the memory over the run, the smallest
//! sufficient capacity and a predicted memory snapshot.
//!
//! [`AllocatorSettings`] decide which allocator is simulated, with which options. A [`Prediction`]
//! holds a schedule with that allocator and the device below it; [`Prediction::memory`] replays it,
//! [`Prediction::snapshot`] writes the run down as PyTorch would, [`Prediction::timeline`] event by event for pictures, and [`Prediction::length_model`] extends
//! it by iterations of other lengths. A plain [`OperationList`] goes
//! through the same allocators without a schedule.
//!
//! What the replay cannot show is in [`doubts`]; what others than the allocator take from a device, in [`DeviceBudget`].
//!
//! Left to others: traces and files (the facade `xmem`), the rules that make a schedule
//! (`xmem-orchestrator`), and how results are shown (`xmem-report`).
#![forbid(unsafe_code)]

mod allocator;
mod budget;
mod coverage;
pub mod doubts;
mod finding;
mod lengths;
mod memory;
mod place;
mod prediction;
mod range;
mod resized;
mod sections;
mod simulation;
mod size_law;
mod snapshot;
mod timeline;

pub use allocator::{
    AllocatorError, AllocatorKind, AllocatorSettings, AllocatorSetup, JobEnvironment, Origin,
    other_cudnn_release,
};
pub use budget::{DeviceBudget, HostMemory, NcclMemory};
pub use coverage::{Coverage, CoveredExtent, PartAdvice, PartPeak};
pub use finding::Finding;
pub use lengths::{
    Dimension, ExtentsError, FitSummary, GrowthPoint, LengthModel, LengthRun, LengthSettings,
    LengthsError, OrderPeaks, Quantiles, STEADY_ITERATIONS, SteadyRun, VaryingDimension,
};
pub use memory::{
    AllocatorCounts, CapacitySearch, Curve, Detail, Fragmentation, IterationPeak, LiveBlock,
    OutOfMemory, Peak, PredictedMemory, RoleShare, ShortAt, UnmodeledShare,
};
pub use place::{Locator, Place};
pub use prediction::{PredictedBlock, Prediction};
pub use range::{Bounds, Confidence, PeakRange, UncertaintyEffect};
pub use simulation::{
    DEFAULT_TOTAL, FailedAllocation, MemoryStats, Offset, OperationList, Simulation,
    SimulationSettings, SimulationStep, SimulationSummary, StepError, StepOutcome,
};
pub use size_law::{Closeness, LawKind, SizeLaw, telling_length};
pub use snapshot::{NoSegments, SnapshotEnd};
pub use timeline::{
    BlockKey, HeldBlock, MAX_LEFT_OUT, MemoryAtFailure, MomentSpan, PathId, Stacked, StackedGroup,
    TextId, Timeline, TimelineBlock, TimelineFailure, TimelineLeftOut, TimelineMoment,
    TimelineSegment, TreeNode,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
