//! The answer: a value that owns all it says, so that it outlives the trace.

use crate::allocator::AllocatorSetup;
use crate::facts::TraceFacts;
use crate::range::Range as Spread;
use crate::timings::Timings;
use std::ops::Range;
use xmem_analyzer::{Phase, Role};
use xmem_orchestrator::{RuleEffect, Target};
use xmem_profiles::Device;
use xmem_types::{Bytes, Diagnostic, IterationId, Severity};

/// What the job needs, when, and because of what.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Whether the job fits.
    pub verdict: Verdict,
    /// GPU, PyTorch version and what-ifs it was asked for.
    pub target: Target,
    /// The allocator that was simulated, with its options.
    pub setup: AllocatorSetup,
    /// The iterations it is about; all of the trace if none were chosen.
    pub iterations: Range<IterationId>,
    /// The peaks.
    pub peak: Peak,
    /// How far the peaks may be off.
    pub range: Spread,
    /// What is alive at the peak of allocated memory and made by operators of which it is not known
    /// what they ask for on CUDA, most bytes first.
    pub unmodelled: Vec<UnmodelledShare>,
    /// Live bytes at the peak of allocated memory, by role, in the order of [`Role::ALL`].
    pub by_role: Vec<RoleShare>,
    /// The largest blocks alive at that peak, largest first.
    pub largest: Vec<LiveBlock>,
    /// Peaks iteration by iteration; the first entry may stand for what comes before the first.
    pub per_iteration: Vec<IterationPeak>,
    /// Memory over the run.
    pub curve: Curve,
    /// What is reserved and holds no tensor.
    pub fragmentation: Fragmentation,
    /// The allocator's counts.
    pub allocator: AllocatorCounts,
    /// Where the job runs out of memory on the device, if it does.
    pub out_of_memory: Option<OutOfMemory>,
    /// The smallest device memory in which the job runs, if it was asked for.
    pub min_capacity: Option<Bytes>,
    /// What each rule of the lowering did, in the order of the rules.
    pub rules: Vec<RuleEffect>,
    /// What was odd or missing, from every stage.
    pub findings: Vec<Finding>,
    /// What is in the trace.
    pub trace: TraceFacts,
    /// Time taken by each stage. Not part of the result.
    pub timings: Timings,
}

impl Answer {
    /// The device it was asked for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.target.device
    }

    /// Device memory that stays free at the peak; none if the job does not fit.
    #[must_use]
    pub fn headroom(&self) -> Option<Bytes> {
        let (memory, peak) = (self.device().memory, self.peak.device);
        (self.out_of_memory.is_none() && peak <= memory).then(|| memory - peak)
    }

    /// What the job needs beyond the device's memory; none if it fits.
    #[must_use]
    pub fn shortfall(&self) -> Option<Bytes> {
        self.out_of_memory.as_ref().map(|oom| oom.needed.saturating_sub(self.device().memory))
    }

    /// The findings because of which the verdict is withheld.
    pub fn reasons(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.severity == Severity::Serious)
    }
}

/// Whether the job fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The replay under the device's own capacity runs to its end.
    Fits,
    /// It runs out of memory.
    DoesNotFit,
    /// Too much is missing from the trace: some finding is [`Severity::Serious`].
    Withheld,
}

impl Verdict {
    /// The name in machine-readable output (`does_not_fit`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::DoesNotFit => "does_not_fit",
            Self::Withheld => "withheld",
        }
    }
}

/// The peaks that people mix up.
///
/// Where the job fits, all figures are those of the replay under the device's own capacity. Where
/// it does not, they are those of a device with room for everything.
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
    /// Reserved on a device with room for everything, where nothing cached is ever given back.
    pub ample_reserved: Bytes,
    /// Where allocated memory peaks.
    pub at: Option<Place>,
    /// Where reserved memory reaches its peak.
    pub reserved_at: Option<Place>,
}

/// A place in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Iteration; none before the first.
    pub iteration: Option<IterationId>,
    /// Phase.
    pub phase: Phase,
    /// Operators and annotations from the outermost in; empty where unknown.
    pub op_path: Vec<String>,
    /// Module path (`GPT2_0 > Block_3 > MLP_0`).
    pub module: Option<String>,
    /// Python line (`train.py(12): forward`).
    pub line: Option<String>,
}

impl Place {
    /// The innermost operator.
    #[must_use]
    pub fn op(&self) -> Option<&str> {
        self.op_path.last().map(String::as_str)
    }
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

/// Live bytes of one operator that is not modelled: kept as the CPU had them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmodelledShare {
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
    /// Bytes that the program asked for.
    pub requested: Bytes,
    /// What it is.
    pub role: Role,
    /// Why it is taken to be that; empty where a rule added it.
    pub evidence: &'static str,
    /// The rule that added, resized or retimed it.
    pub rule: Option<&'static str>,
    /// Where it was allocated.
    pub origin: Place,
}

/// Peaks within one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IterationPeak {
    /// The iteration; none for what comes before the first.
    pub iteration: Option<IterationId>,
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

/// Reserved memory that holds no tensor, at the moment at which reserved memory peaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Reserved memory less allocated memory.
    pub unused: Bytes,
    /// The part of it in segments without any tensor: it can be given back to the device.
    pub releasable: Bytes,
    /// How many free pieces it consists of.
    pub pieces: u64,
    /// The largest of them: a larger request needs a new segment.
    pub largest_piece: Bytes,
    /// Bytes by which blocks are larger than what the program asked for, at the allocated peak.
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
    /// Allocations that succeeded only after everything cached was given back.
    pub retries: u64,
}

/// The request that the device cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Where in the program.
    pub at: Option<Place>,
    /// Which request, counted from 0.
    pub request: u64,
    /// What the program asked for.
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

/// Something odd or missing, in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable, kebab-case name.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What, and what it means for the answer.
    pub message: String,
    /// The first place it was seen, in words.
    pub place: Option<String>,
    /// How often it was seen.
    pub count: u64,
}

impl Finding {
    /// A diagnostic without its place.
    pub(crate) fn anywhere(diagnostic: &Diagnostic) -> Self {
        Self {
            code: diagnostic.code,
            severity: diagnostic.severity,
            message: diagnostic.message.clone(),
            place: None,
            count: diagnostic.count,
        }
    }
}
