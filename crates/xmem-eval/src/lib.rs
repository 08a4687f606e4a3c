//! Estimates and simulations, judged by recorded truth.
//!
//! A memory snapshot of a real run (`torch.cuda.memory._dump_snapshot`) records what PyTorch's
//! allocator did, event by event. Two things can be held against it: the simulator, which gets the
//! recorded requests and has to do the same ([`rerun`]); and an estimate from a CPU trace, which
//! has to foresee the requests themselves. [`evaluation`] judges estimators by many runs whose peak is known.
//!
//! Left to others: opening files, printing, and improving what is judged.
#![forbid(unsafe_code)]

pub mod evaluation;
mod facts;
mod findings;
mod recording;
mod rerun;
mod setup;
mod side;
mod tally;
mod validate;

pub use facts::{DeviceFacts, HistoryFacts, LiveGroup, SegmentFacts, SnapshotFacts, StreamFacts};
pub use recording::StartUncertainty;
pub use rerun::{
    Addresses, AllocatorAction, BlockRequest, Candidate, Counts, Difference, Divergences,
    EndComparison, Figures, FirstDivergence, MemoryPlace, Pair, PlaceContent, Rerun, RerunError,
    RerunOptions, RerunVerdict, StartFacts, rerun,
};
pub use setup::{Setup, SetupError, SetupSource};
pub use tally::Tally;
pub use validate::{
    CurveDistance, CurvePoint, DifferenceGroup, DifferenceKind, Judged, Moment, Peaks, PhasePeaks,
    RequestCounts, RoleBytes, ValidateError, Validation, validate,
};
pub use xmem_snapshot::Site;

pub use xmem_simulator::EventAction;
pub use xmem_snapshot::{
    DeviceIndex, DeviceUsage, EntryIndex, Limits, PoolId, Snapshot, SnapshotError, Usage,
    read as read_snapshot,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
