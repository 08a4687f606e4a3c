//! The result of replaying a recording.

use super::{Addresses, EndComparison, FirstDivergence};
use crate::recording::StartUncertainty;
use crate::setup::Setup;
use xmem::predict::Finding;
use xmem_snapshot::DeviceIndex;
use xmem_types::Bytes;

/// The result of replaying a recording.
#[derive(Clone, Debug)]
pub struct Rerun {
    /// The device.
    pub device: DeviceIndex,
    /// The allocator.
    pub setup: Setup,
    /// The kind of places that were compared: addresses, or segments and offsets.
    pub addresses: Addresses,
    /// The state when the recording began.
    pub start: StartFacts,
    /// The operations of the program, counted.
    pub counts: Counts,
    /// Steps in which the simulator did something else.
    pub divergences: Divergences,
    /// The comparison of segments and blocks at the end; none if the recording ended before the
    /// snapshot.
    pub end: Option<EndComparison>,
    /// Figures on both sides.
    pub figures: Figures,
    /// The oddities.
    pub findings: Vec<Finding>,
    /// The number of kinds of doubts among them: contents that no allocator leaves behind.
    pub doubts: usize,
}

impl Rerun {
    /// Returns whether the simulator did all as recorded, and the recording is free of doubts.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.verdict() == RerunVerdict::Exact
    }

    /// The verdict.
    #[must_use]
    pub fn verdict(&self) -> RerunVerdict {
        let is_equal = self.end.as_ref().is_none_or(EndComparison::is_equal);
        match (self.divergences.total(), is_equal) {
            (0, true) if self.doubts == 0 => RerunVerdict::Exact,
            (0, true) => RerunVerdict::Withheld,
            _ => RerunVerdict::Different,
        }
    }
}

/// The result of a replay in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerunVerdict {
    /// The simulator did all as recorded.
    Exact,
    /// It did something else.
    Different,
    /// No difference was found, but the recording does not allow a verdict: nothing of it was replayed, or
    /// it holds what no allocator leaves behind.
    Withheld,
}

impl RerunVerdict {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Different => "different",
            Self::Withheld => "withheld",
        }
    }
}

/// The state when the recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartFacts {
    /// Segments.
    pub segments: u64,
    /// Their bytes.
    pub reserved: Bytes,
    /// Blocks in use.
    pub blocks: u64,
    /// Their bytes.
    pub allocated: Bytes,
    /// The parts that going back from the end leaves open.
    pub uncertainty: StartUncertainty,
}

/// The operations of the program, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries of the trace.
    pub entries: u64,
    /// Blocks that it got.
    pub allocations: u64,
    /// Blocks that it gave back.
    pub frees: u64,
    /// Of those, blocks that another stream used (inferred: they became free only later).
    pub shared_frees: u64,
    /// Calls of `torch.cuda.empty_cache` (inferred: segments were released, and not by an
    /// allocation).
    pub empty_caches: u64,
    /// Allocations during which the device refused memory (inferred: segments were released in
    /// the middle).
    pub refusals: u64,
    /// Allocations that failed.
    pub failures: u64,
    /// Segments got, and pages mapped.
    pub device_allocs: u64,
    /// Segments released, and pages unmapped.
    pub device_frees: u64,
}

/// Steps in which the simulator did something else.
#[derive(Clone, Debug, Default)]
pub struct Divergences {
    /// The number of divergences, in the order of [`Difference::ALL`](crate::Difference::ALL).
    pub by_difference: [u64; 3],
    /// The first one, which the others may follow from.
    pub first: Option<Box<FirstDivergence>>,
}

impl Divergences {
    /// The number.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_difference.iter().sum()
    }
}

/// A figure on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// As recorded.
    pub recorded: Bytes,
    /// As simulated.
    pub simulated: Bytes,
}

/// Figures on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The most that was reserved.
    pub reserved_peak: Pair,
    /// Reserved at the end.
    pub reserved_end: Pair,
    /// Allocated at the end.
    pub allocated_end: Pair,
    /// The most that was allocated; a trace does not have the sizes of blocks, so that this is
    /// simulated only.
    pub allocated_peak: Bytes,
}
