//! The figures of a prediction, as values that own all they say.

use crate::place::Place;
use xmem_analyzer::Role;
use xmem_types::{Bytes, IterationId};

/// The peaks that people mix up.
///
/// If the job fits, all figures are those of the replay under the device's own capacity. If
/// it does not, they are those of a device with space for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Tensors alive at once, each rounded up to its block: `torch.cuda.max_memory_allocated`.
    pub allocated: Bytes,
    /// The same without rounding.
    pub requested: Bytes,
    /// Segments that PyTorch's allocator holds: `torch.cuda.max_memory_reserved`.
    pub reserved: Bytes,
    /// Reserved plus the context: what nvidia-smi shows for the process.
    pub device: Bytes,
    /// Reserved on a device with space for everything, where nothing cached is ever released.
    pub ample_reserved: Bytes,
    /// The place at which allocated memory peaks.
    pub at: Option<Place>,
    /// The place at which reserved memory reaches its peak.
    pub reserved_at: Option<Place>,
}

/// Live bytes of one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleShare {
    /// The role.
    pub role: Role,
    /// Bytes, rounded as the allocator rounds.
    pub bytes: Bytes,
    /// Blocks.
    pub blocks: u64,
}

/// Live bytes of one operator that is not modeled: kept as the CPU had them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmodeledShare {
    /// The operator.
    pub op: String,
    /// Bytes, rounded as the allocator rounds.
    pub bytes: Bytes,
    /// Blocks.
    pub blocks: u64,
}

/// A block alive at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveBlock {
    /// Bytes it takes in its segment.
    pub bytes: Bytes,
    /// Bytes that the program requested.
    pub requested: Bytes,
    /// The role.
    pub role: Role,
    /// The evidence for the role; empty where a rule added the block.
    pub evidence: &'static str,
    /// The rule that added, resized or retimed it.
    pub rule: Option<&'static str>,
    /// The place of the allocation.
    pub origin: Place,
}

/// Peaks within one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationPeak {
    /// The iteration; none for what comes before the first.
    pub iteration: Option<IterationId>,
    /// Memory that was allocated before it, and still is when it begins.
    pub start: Bytes,
    /// Highest allocated memory.
    pub allocated: Bytes,
    /// Highest reserved memory.
    pub reserved: Bytes,
}

/// Memory over the run, in equal steps of allocator requests. Each point holds the highest value
/// within its step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// Allocated memory.
    pub allocated: Vec<Bytes>,
    /// Reserved memory.
    pub reserved: Vec<Bytes>,
    /// The point at which each iteration begins.
    pub iterations: Vec<(IterationId, usize)>,
    /// Requests that the whole curve stands for.
    pub requests: u64,
}

/// A moment at which memory is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShortAt {
    /// The peak of allocated memory.
    #[default]
    PeakAllocated,
    /// The request that the device cannot serve, after everything cached was released.
    OutOfMemory,
}

impl ShortAt {
    /// The name in machine-readable output (`out_of_memory`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PeakAllocated => "peak_allocated",
            Self::OutOfMemory => "out_of_memory",
        }
    }
}

/// Reserved memory that holds no tensor, at the moment at which memory is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// The moment.
    pub at: ShortAt,
    /// Reserved memory then.
    pub reserved: Bytes,
    /// Reserved memory less allocated memory.
    pub unused: Bytes,
    /// The part of it in segments without any tensor: it can be released to the device.
    pub releasable: Bytes,
    /// The number of free pieces it consists of.
    pub pieces: u64,
    /// The largest of them: a larger request needs a new segment.
    pub largest_piece: Bytes,
    /// Bytes by which blocks are larger than what the program requested, at the allocated peak.
    pub rounding: Bytes,
}

/// Counts of the allocator over the replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorCounts {
    /// Requests replayed (allocations and frees).
    pub requests: u64,
    /// Allocations.
    pub allocations: u64,
    /// Most segments held at once.
    pub segments_peak: u64,
    /// `cudaMalloc` calls that succeeded.
    pub device_allocs: u64,
    /// `cudaFree` calls.
    pub device_frees: u64,
    /// Allocations that succeeded only after everything cached was released.
    pub retries: u64,
}

/// The request that the device cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The place in the program.
    pub at: Option<Place>,
    /// The request, counted from 0.
    pub request: u64,
    /// The size that the program requested.
    pub requested: Bytes,
    /// The segment that PyTorch asks the device for: "Tried to allocate" in its message.
    pub tried: Bytes,
    /// Free on the device then.
    pub free: Bytes,
    /// Allocated then.
    pub allocated: Bytes,
    /// Reserved then.
    pub reserved: Bytes,
    /// Device memory, context included, that would have served this request and all later ones.
    pub needed: Bytes,
}
