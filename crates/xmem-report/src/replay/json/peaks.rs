//! The peaks, their range, and where memory runs out.

use crate::bounds::BoundsDto;
use crate::places::PlaceDto;
use serde::Serialize;
use xmem::Answer;
use xmem::predict::{IterationPeak, OutOfMemory, Peak, UncertaintyEffect};

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PeakDto<'a> {
    /// Tensors alive at once: torch.cuda.max_memory_allocated().
    allocated_bytes: u64,
    /// The same without the allocator's rounding.
    requested_bytes: u64,
    /// All segments: torch.cuda.max_memory_reserved().
    reserved_bytes: u64,
    /// Reserved plus context: what nvidia-smi shows for the process.
    device_bytes: u64,
    at: Option<PlaceDto<'a>>,
    reserved_at: Option<PlaceDto<'a>>,
}

impl<'a> From<&'a Peak> for PeakDto<'a> {
    fn from(peak: &'a Peak) -> Self {
        Self {
            allocated_bytes: peak.allocated.get(),
            requested_bytes: peak.requested.get(),
            reserved_bytes: peak.reserved.get(),
            device_bytes: peak.device.get(),
            at: peak.at.as_ref().map(PlaceDto::from),
            reserved_at: peak.reserved_at.as_ref().map(PlaceDto::from),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct UnlimitedDto {
    /// Peak reserved.
    reserved_bytes: u64,
    /// Peak reserved plus context.
    device_bytes: u64,
    /// true if device_bytes is within the device's memory. A job may fit even if this is false.
    fits: bool,
}

impl From<&Answer> for UnlimitedDto {
    fn from(answer: &Answer) -> Self {
        let (reserved, device) = (answer.memory.peak.ample_reserved, answer.device());
        let needed = reserved + device.context;
        Self {
            reserved_bytes: reserved.get(),
            device_bytes: needed.get(),
            fits: needed <= device.memory,
        }
    }
}

/// Peaks of one iteration.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct IterationDto {
    /// Iteration, counted from 0; null before the first.
    iteration: Option<u32>,
    /// Peak allocated.
    allocated_bytes: u64,
    /// Peak reserved.
    reserved_bytes: u64,
}

impl From<&IterationPeak> for IterationDto {
    fn from(peaks: &IterationPeak) -> Self {
        Self {
            iteration: peaks.iteration.map(|id| id.0),
            allocated_bytes: peaks.allocated.get(),
            reserved_bytes: peaks.reserved.get(),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct OutOfMemoryDto<'a> {
    at: Option<PlaceDto<'a>>,
    /// The index of the allocator request, counted from 0.
    request_index: u64,
    /// Bytes requested by the program.
    requested_bytes: u64,
    /// The size of the segment requested from the device: 'Tried to allocate' in PyTorch's message.
    tried_bytes: u64,
    /// Free device memory at that time.
    free_bytes: u64,
    /// Allocated memory at that time.
    allocated_bytes: u64,
    /// Reserved memory at that time.
    reserved_bytes: u64,
    /// Device memory, context included, that would have been enough.
    needed_bytes: u64,
}

impl<'a> From<&'a OutOfMemory> for OutOfMemoryDto<'a> {
    fn from(oom: &'a OutOfMemory) -> Self {
        Self {
            at: oom.at.as_ref().map(PlaceDto::from),
            request_index: oom.request,
            requested_bytes: oom.requested.get(),
            tried_bytes: oom.tried.get(),
            free_bytes: oom.free.get(),
            allocated_bytes: oom.allocated.get(),
            reserved_bytes: oom.reserved.get(),
            needed_bytes: oom.needed.get(),
        }
    }
}

/// The range of the peaks.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PeakRangeDto {
    /// Peak allocated.
    allocated_bytes: BoundsDto,
    /// Peak reserved.
    reserved_bytes: BoundsDto,
    /// Peak reserved plus context, from the least to the most that the context may take.
    device_bytes: BoundsDto,
    /// certain: the verdict holds over the whole range; likely: it does, but the range need not have everything (which
    /// plans cudnn.benchmark or a release of cuDNN that was not asked chooses; a recording in which autocast had the
    /// lists of the CPU; memory cached before the recording began); may_fail: the job is expected to fit, but runs out
    /// of memory at the upper end of the range, or with the least memory that the device may leave to the allocator;
    /// may_fit: it is expected to run out of memory, but fits at the lower end, or with the most memory; doubtful: it
    /// holds, but the trace itself is doubtful, or the job is compiled and was recorded eagerly, or trains on several
    /// processes and was recorded on the CPU.
    #[cfg_attr(test, schemars(extend("enum" = ["certain", "likely", "may_fail", "may_fit", "doubtful"])))]
    confidence: &'static str,
    /// The range due to each uncertainty alone.
    uncertainties: Vec<UncertaintyDto>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UncertaintyDto {
    /// convolution_plan: the algorithm that cuDNN chooses, if the release that will run was not queried or its workspace
    /// is smaller than the fitted model's; convolution_benchmark: the plan that is the fastest of those that
    /// torch.backends.cudnn.benchmark tries; convolution_splits: workspaces on GPUs of compute capability 9, which
    /// follow from the clusters that the GPU runs at once; library: undocumented memory of libraries; operator: operators without a
    /// rule; device_memory: the memory that the device leaves to the allocator; address_order: the order in which the
    /// driver assigns addresses; assumed_values: values that a virtual GPU does not compute; gpu_timing: when work on
    /// the GPU is complete; other_orders: the order of batches of different lengths; torch_compile: what torch.compile does to a job that was recorded eagerly.
    #[cfg_attr(
        test,
        schemars(extend(
            "enum" = [
                "convolution_plan",
                "convolution_benchmark",
                "convolution_splits",
                "library",
                "operator",
                "device_memory",
                "address_order",
                "assumed_values",
                "gpu_timing",
                "other_orders",
                "torch_compile"
            ]
        ))
    )]
    name: &'static str,
    /// The number of uncertain blocks; null if the uncertainty does not concern blocks.
    blocks: Option<u64>,
    /// Peak allocated, without the other uncertainties.
    allocated_bytes: BoundsDto,
    /// Peak reserved, without the other uncertainties.
    reserved_bytes: BoundsDto,
}

impl From<&Answer> for PeakRangeDto {
    fn from(answer: &Answer) -> Self {
        let range = &answer.memory.range;
        let (least, most) = answer.device().context_bounds();
        Self {
            allocated_bytes: BoundsDto::from(&range.allocated),
            reserved_bytes: BoundsDto::from(&range.reserved),
            device_bytes: (range.reserved.low + least, range.reserved.high + most).into(),
            confidence: range.confidence.name(),
            uncertainties: range.uncertainties.iter().map(UncertaintyDto::from).collect(),
        }
    }
}

impl From<&UncertaintyEffect> for UncertaintyDto {
    fn from(effect: &UncertaintyEffect) -> Self {
        Self {
            name: effect.name,
            blocks: effect.blocks,
            allocated_bytes: BoundsDto::from(&effect.allocated),
            reserved_bytes: BoundsDto::from(&effect.reserved),
        }
    }
}
