//! The entries of results, segments and the event list, in the form of recordings.

use serde::Serialize;
use xmem::predict::{
    FailedAllocation, MemoryStats, Offset, Simulation, SimulationSummary, Step, StepOutcome,
};
use xmem::simulator::{BlockUse, Event, EventAction, Operation, PoolKind, SegmentState};

/// The result of an operation.
#[derive(Serialize)]
pub(super) struct ResultDto {
    /// Only of allocations that did not fail; null for zero bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    addr: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oom: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    reserved: u64,
    allocated: u64,
    active: u64,
    requested: u64,
    inactive_split: u64,
    peak_reserved: u64,
    peak_allocated: u64,
    segments_n: u64,
    retries: u64,
    ooms: u64,
    cuda_free: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Vec<SegmentDto>>,
}

impl ResultDto {
    pub(super) fn new(step: &Step, segments: Option<Vec<SegmentDto>>) -> Self {
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

#[derive(Serialize)]
pub(super) struct SegmentDto {
    addr: i64,
    size: u64,
    stream: u32,
    pool: &'static str,
    expandable: bool,
    /// Size, requested size, state.
    blocks: Vec<(u64, u64, &'static str)>,
    #[serde(skip_serializing_if = "Option::is_none")]
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

#[derive(Serialize)]
pub(super) struct EventDto {
    action: &'static str,
    addr: Option<i64>,
    size: u64,
    stream: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// The summary of a simulation.
#[derive(Serialize)]
pub(super) struct SummaryDto {
    operations: u64,
    allocations: u64,
    frees: u64,
    peak_allocated: u64,
    peak_reserved: u64,
    failures: u64,
    first_failure: Option<FailureDto>,
    retries: u64,
    segments: u64,
    allocated: u64,
    reserved: u64,
    inactive_split: u64,
    largest_free: u64,
}

#[derive(Serialize)]
struct FailureDto {
    index: usize,
    size: u64,
    stream: u32,
    tried: u64,
    allocated: u64,
    reserved: u64,
    cuda_free: Option<u64>,
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
