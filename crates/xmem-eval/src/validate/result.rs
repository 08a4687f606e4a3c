//! The result of comparing an estimate with a recording.

use crate::rerun::Rerun;
use xmem::analyzer::{Phase, Role};
use xmem::predict::{Finding, Place};
use xmem_snapshot::EntryIndex;
use xmem_snapshot::Site;
use xmem_types::{Bytes, IterationId};

/// An estimate, held against a recording.
#[derive(Clone, Debug)]
pub struct Validation {
    /// The recording, run again: what its figures rest on.
    pub rerun: Rerun,
    /// The peaks.
    pub peaks: Peaks,
    /// The numbers of requests that match.
    pub requests: RequestCounts,
    /// Highest allocated memory, phase by phase.
    pub phases: Vec<PhasePeaks>,
    /// The distance between the two curves, iteration by iteration.
    pub curves: Vec<CurveDistance>,
    /// The two curves, request by request.
    pub points: Vec<CurvePoint>,
    /// The moment at which the recording allocates most, on both sides; none if it allocates
    /// nothing.
    pub moment: Option<Moment>,
    /// Bytes allocated at that moment, by role.
    pub roles: Vec<RoleBytes>,
    /// The origins of the differences: those that matter at that moment first, then by their size.
    pub differences: Vec<DifferenceGroup>,
    /// The oddities.
    pub findings: Vec<Finding>,
}

/// Memory at a request that is the same on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurvePoint {
    /// Allocated memory.
    pub allocated: Judged,
    /// Reserved memory.
    pub reserved: Judged,
}

/// An estimated and a recorded figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// The estimate.
    pub estimated: Bytes,
    /// The truth.
    pub recorded: Bytes,
}

impl Validation {
    /// Returns whether the relative error of peak reserved is at most `tolerance`; never if the recording
    /// cannot be trusted.
    #[must_use]
    pub fn is_within(&self, tolerance: f64) -> bool {
        self.is_judged() && self.peaks.reserved.relative().abs() <= tolerance
    }

    /// Returns whether the recording is free of doubts, so that it can judge the estimate.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.rerun.doubts == 0
    }
}

impl Judged {
    /// By how many bytes the estimate is too high; negative if it is too low.
    #[must_use]
    pub fn error(self) -> i64 {
        difference(self.estimated, self.recorded)
    }

    /// The error as a part of the truth.
    #[must_use]
    pub fn relative(self) -> f64 {
        self.error() as f64 / self.recorded.get().max(1) as f64
    }
}

/// `a - b`; sizes of memory are far below 2^63.
pub(super) fn difference(a: Bytes, b: Bytes) -> i64 {
    a.get().cast_signed() - b.get().cast_signed()
}

/// The peaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// `torch.cuda.max_memory_allocated`. What blocks take beyond what was requested, a recording
    /// does not have; it is simulated.
    pub allocated: Judged,
    /// The bytes that the program requested and has not freed.
    pub requested: Judged,
    /// `torch.cuda.max_memory_reserved`.
    pub reserved: Judged,
}

/// The numbers of requests that match. Blocks are counted, within what the recording
/// covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Of the estimate.
    pub estimated: u64,
    /// Of the recording.
    pub recorded: u64,
    /// Of the same size, at the same place of the sequence or there before the recording began.
    pub same: u64,
    /// Of the same size, a little earlier or later.
    pub moved: u64,
    /// Of another size, between the same neighbors.
    pub resized: u64,
    /// Only in the estimate.
    pub extra: u64,
    /// Only in the recording.
    pub missing: u64,
    /// Blocks that the estimate allocates before the recording begins, or after it ends.
    pub outside: u64,
}

/// Highest allocated memory in one phase of one iteration. A recording has no phases;
/// its requests have those of the estimate's that they match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhasePeaks {
    /// Iteration; none before the first.
    pub iteration: Option<IterationId>,
    /// Phase.
    pub phase: Phase,
    /// The figures.
    pub allocated: Judged,
}

/// The distance between the estimate and the recording in one iteration, at the requests that were
/// found to be the same: the mean of the difference, as a part of the mean of the recorded values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveDistance {
    /// Iteration.
    pub iteration: IterationId,
    /// At how many requests the two were compared.
    pub points: u64,
    /// Of allocated memory.
    pub allocated: f64,
    /// Of reserved memory.
    pub reserved: f64,
}

/// The moment at which the recording allocates most, on both sides.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The figures there.
    pub allocated: Judged,
    /// The entry of the history.
    pub entry: EntryIndex,
    /// The call site of the request, as recorded.
    pub site: Site,
    /// The estimate's place for it.
    pub place: Place,
    /// The place where the estimate itself peaks, if that is another one.
    pub estimated_peak: Option<Place>,
}

/// Bytes of one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleBytes {
    /// The role; none for recorded blocks that are no block of the estimate. Other recorded blocks
    /// have the role of the estimate's that they match.
    pub role: Option<Role>,
    /// The figures.
    pub bytes: Judged,
}

/// In what way blocks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// Only in the estimate.
    Extra,
    /// Only in the recording.
    Missing,
    /// Of another size.
    Resized,
    /// The estimate still has it, where the recording no longer does, or not yet.
    Held,
    /// The estimate no longer has it, or not yet, where the recording does.
    NotHeld,
    /// The same request gets a larger or smaller block.
    Rounding,
}

impl DifferenceKind {
    /// The name in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Extra => "extra",
            Self::Missing => "missing",
            Self::Resized => "resized",
            Self::Held => "held",
            Self::NotHeld => "not_held",
            Self::Rounding => "rounding",
        }
    }
}

/// Blocks that differ in the same way, from the same place, in whatever iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceGroup {
    /// In what way.
    pub kind: DifferenceKind,
    /// The number of blocks.
    pub count: u64,
    /// The number of them that matter at the moment of the recorded peak.
    pub count_at_peak: u64,
    /// By how many bytes they make the estimate too high there; negative where too low. Over all
    /// groups the sum is the error there.
    pub at_peak: i64,
    /// By how many bytes they differ in all.
    pub bytes: Bytes,
    /// The size of each in the estimate; none if it is missing.
    pub estimated: Option<Bytes>,
    /// The size of each in the recording; none if it is extra.
    pub recorded: Option<Bytes>,
    /// The role that the estimate gives them.
    pub role: Option<Role>,
    /// The rule that added, resized or retimed them.
    pub rule: Option<&'static str>,
    /// The place of the first of them in the estimate, or of the first that matters.
    pub place: Option<Place>,
    /// Of blocks that are only recorded, the place that the estimate has just before the first.
    pub after: Option<Place>,
    /// The call site of the first of them in the recording.
    pub site: Site,
}
