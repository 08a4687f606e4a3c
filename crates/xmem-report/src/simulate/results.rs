//! The entries of results, segments and the event list, in the form of recordings.

use serde::Serialize;
use xmem::predict::{
    FailedAllocation, MemoryStats, Offset, Simulation, SimulationStep, SimulationSummary,
    StepOutcome,
};
use xmem::simulator::{BlockUse, Event, EventAction, Operation, PoolKind, SegmentState};

/// The result of an operation, in the form of recordings of PyTorch's allocator: the figures of torch.cuda.memory_stats
/// after the operation.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ResultDto {
    /// The address of the block, in bytes relative to the first segment; null for zero bytes. Only for allocations that
    /// did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    addr: Option<Option<i64>>,
    /// true if the allocation failed, else left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "bool", extend("const" = true)))]
    oom: Option<bool>,
    /// The error message. Only for allocations that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "String"))]
    message: Option<String>,
    /// Bytes of segments.
    reserved: u64,
    /// Bytes of blocks handed out.
    allocated: u64,
    /// Allocated bytes, and those of freed blocks that wait for other streams.
    active: u64,
    /// Bytes requested by the program.
    requested: u64,
    /// Bytes of free blocks in segments that are partly in use.
    inactive_split: u64,
    /// The highest reserved bytes since peaks were last reset.
    peak_reserved: u64,
    /// The highest allocated bytes since peaks were last reset.
    peak_allocated: u64,
    /// Segments.
    segments_n: u64,
    /// Allocations so far that were retried after cached memory was released.
    retries: u64,
    /// Allocations so far that failed.
    ooms: u64,
    /// Free device memory; null without a limit.
    cuda_free: Option<u64>,
    /// Segments by address; left out where --segments says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Vec<SegmentDto>"))]
    segments: Option<Vec<SegmentDto>>,
}

impl ResultDto {
    pub(super) fn new(step: &SimulationStep, segments: Option<Vec<SegmentDto>>) -> Self {
        let (addr, failure) = match &step.outcome {
            StepOutcome::Done => (None, None),
            StepOutcome::Allocated(offset) => (Some(offset.map(|Offset(at)| at)), None),
            StepOutcome::Failed(failure) => (None, Some(failure)),
        };
        let MemoryStats {
            reserved,
            allocated,
            active,
            requested,
            inactive_split,
            peak_reserved,
            peak_allocated,
            segments: segments_n,
            retries,
            ooms,
            device_free,
        } = step.stats;
        Self {
            addr,
            oom: failure.map(|_| true),
            message: failure.map(message),
            reserved: reserved.get(),
            allocated: allocated.get(),
            active: active.get(),
            requested: requested.get(),
            inactive_split: inactive_split.get(),
            peak_reserved: peak_reserved.get(),
            peak_allocated: peak_allocated.get(),
            segments_n,
            retries,
            ooms,
            cuda_free: device_free.map(xmem::Bytes::get),
            segments,
        }
    }
}

fn message(failure: &FailedAllocation) -> String {
    let FailedAllocation { tried, allocated, reserved, device_free, .. } = failure;
    let free = device_free.map(|free| format!(", {free} free")).unwrap_or_default();
    format!("tried to allocate {tried}{free}; {reserved} reserved, {allocated} of it allocated")
}

/// A range that the allocator has from the device; of an expandable segment, a contiguous mapped range.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SegmentDto {
    /// Start address, as in results.
    addr: i64,
    /// Bytes.
    size: u64,
    /// The stream whose requests it serves.
    stream: u32,
    /// The pool of the segment.
    #[cfg_attr(test, schemars(extend("enum" = ["small", "large"])))]
    pool: &'static str,
    /// true for a part of an expandable segment.
    expandable: bool,
    /// Its blocks by address, each with its size, its requested size (0 of a free block) and its state:
    /// active_allocated, active_pending_free or inactive.
    blocks: Vec<(u64, u64, &'static str)>,
    /// The private pool it belongs to; left out for the default ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "u32"))]
    private: Option<u32>,
}

impl SegmentDto {
    pub(super) fn new(simulation: &Simulation, segment: &SegmentState) -> Self {
        let Offset(addr) = simulation.offset(segment.addr);
        let blocks = segment.blocks.iter().map(|block| {
            // The requested size of a free block is that of an earlier allocation.
            let requested = if block.used == BlockUse::Free { 0 } else { block.requested.get() };
            (block.size.get(), requested, block.used.name())
        });
        Self {
            addr,
            size: segment.size.get(),
            stream: segment.stream.0,
            pool: match segment.pool {
                PoolKind::Small => "small",
                PoolKind::Large => "large",
            },
            expandable: segment.expandable,
            blocks: blocks.collect(),
            private: segment.private_pool.map(|pool| pool.0),
        }
    }
}

/// An entry of the allocator's own event list (torch.cuda.memory._snapshot()['device_traces']).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct EventDto {
    /// The kind of event.
    #[cfg_attr(test, schemars(extend("enum" = ["alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom"])))]
    action: &'static str,
    /// Address, as in results; null for oom.
    addr: Option<i64>,
    /// Requested bytes of a block, real bytes of a segment, the rounded size of an oom.
    size: u64,
    /// The stream of the block or segment.
    stream: u32,
    /// Free device memory; only for oom.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "u64"))]
    device_free: Option<u64>,
}

impl EventDto {
    pub(super) fn new(simulation: &Simulation, event: &Event) -> Self {
        // Of an out-of-memory, the address is the device's free memory.
        let failed = event.action == EventAction::Oom;
        let Offset(addr) = simulation.offset(event.addr);
        Self {
            action: event.action.name(),
            addr: (!failed).then_some(addr),
            size: event.size.get(),
            stream: event.stream.0,
            device_free: failed.then_some(event.addr.0),
        }
    }
}

/// The summary.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SummaryDto {
    /// Operations.
    operations: u64,
    /// Allocations among them.
    allocations: u64,
    /// Frees among them.
    frees: u64,
    /// The highest allocated bytes, whether or not peaks were reset.
    peak_allocated: u64,
    /// The highest reserved bytes, whether or not peaks were reset.
    peak_reserved: u64,
    /// Allocations that failed.
    failures: u64,
    first_failure: Option<FailureDto>,
    /// Allocations retried after cached memory was released.
    retries: u64,
    /// Segments at the end.
    segments: u64,
    /// Allocated bytes at the end.
    allocated: u64,
    /// Reserved bytes at the end.
    reserved: u64,
    /// Bytes of free blocks in segments that are partly in use, at the end.
    inactive_split: u64,
    /// The largest free block at the end.
    largest_free: u64,
}

/// An allocation that failed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailureDto {
    /// The operation, counted from 0.
    index: usize,
    /// Requested bytes.
    size: u64,
    /// The stream of the request.
    stream: u32,
    /// The size of the segment requested from the device.
    tried: u64,
    /// Bytes of blocks handed out then.
    allocated: u64,
    /// Bytes of segments then.
    reserved: u64,
    /// Free device memory at that time; null without a limit.
    cuda_free: Option<u64>,
    /// The largest block that was still free: too small, or of another stream.
    largest_cached: u64,
}

impl From<SimulationSummary> for SummaryDto {
    fn from(summary: SimulationSummary) -> Self {
        Self {
            operations: summary.operations,
            allocations: summary.allocations,
            frees: summary.frees,
            peak_allocated: summary.peak_allocated.get(),
            peak_reserved: summary.peak_reserved.get(),
            failures: summary.failures,
            first_failure: summary.first_failure.map(FailureDto::from),
            retries: summary.now.retries,
            segments: summary.now.segments,
            allocated: summary.now.allocated.get(),
            reserved: summary.now.reserved.get(),
            inactive_split: summary.now.inactive_split.get(),
            largest_free: summary.largest_free.get(),
        }
    }
}

impl From<FailedAllocation> for FailureDto {
    fn from(failure: FailedAllocation) -> Self {
        let (size, stream) = match failure.operation {
            Operation::Alloc { size, stream, .. } => (size.get(), stream.0),
            _ => (0, 0),
        };
        Self {
            index: failure.index,
            size,
            stream,
            tried: failure.tried.get(),
            allocated: failure.allocated.get(),
            reserved: failure.reserved.get(),
            cuda_free: failure.device_free.map(xmem::Bytes::get),
            largest_cached: failure.largest_cached.get(),
        }
    }
}
