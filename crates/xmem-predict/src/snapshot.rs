//! The predicted run as PyTorch would have recorded it: a memory snapshot, for PyTorch's own
//! viewers and for everything else that reads one.
//!
//! Left to others: the file format (`xmem-snapshot`) and the file.

mod annotations;
mod entries;
mod settings;
mod stacks;

use crate::allocator::AllocatorKind;
use crate::prediction::Prediction;
use entries::EntryRecorder;
use stacks::Stacks;
use std::ops::Range;
use thiserror::Error;
use xmem_simulator::{
    BlockState, BlockUse, Device, DeviceConfig, Framework, FrameworkAllocator, PoolKind,
    ReplayDriver, RequestIndex, SegmentState,
};
use xmem_snapshot::{
    DeviceIndex, Segment, SegmentKind, Snapshot, SnapshotBlock, StackId, StreamHandle, TraceEntry,
};
use xmem_types::{Addr, IterationId, Nanos, Request, RequestKind};

/// The one device of a predicted run.
const DEVICE: DeviceIndex = DeviceIndex(0);

/// The end of a predicted snapshot where memory runs out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SnapshotEnd {
    /// Up to the allocation that fails, as PyTorch's own dump at that moment: what was there then.
    #[default]
    OutOfMemory,
    /// To the end of the job, as on a device with space for all: the run that an answer's figures
    /// are those of.
    Job,
}

/// A snapshot of an allocator that has no segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{} has no segments and blocks that a snapshot could show: choose another allocator",
    kind.name()
)]
pub struct NoSegments {
    /// The allocator.
    pub kind: AllocatorKind,
}

impl Prediction<'_> {
    /// The predicted run up to the end of `iterations`, as a memory snapshot: the file that
    /// `torch.cuda.memory._dump_snapshot` would write if the whole run had been recorded.
    ///
    /// Each entry has the time in the CPU trace that it stands for, and a call stack that says what
    /// the memory is for: operators, Python line, modules and annotations from the trace, then
    /// phase, iteration, rule and role as frames of the file `xmem`.
    ///
    /// A free has the place of the free, then the stack of the allocation; a segment that of the
    /// request which needed it. Without caching, segments have the size that was requested.
    ///
    /// # Errors
    /// If the allocator has no segments to show.
    pub fn snapshot(
        &self,
        iterations: &Range<IterationId>,
        end: SnapshotEnd,
    ) -> Result<Snapshot, NoSegments> {
        let kind = self.setup.kind;
        if kind == AllocatorKind::MallocAsync {
            return Err(NoSegments { kind });
        }
        let run = PredictedRun {
            prediction: self,
            requests: &self.requests()[..self.requests_of(iterations).end],
        };
        let limited = run.record(&self.device, AtFailure::Stop);
        if limited.stopped && end == SnapshotEnd::Job {
            let ample = self.device.without_limit();
            return Ok(run.record(&ample, AtFailure::LiftLimits).snapshot);
        }
        Ok(limited.snapshot)
    }
}

/// The reaction to an allocation that fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtFailure {
    Stop,
    /// As in the replay behind an answer.
    LiftLimits,
}

/// The part of a prediction that is recorded.
struct PredictedRun<'p> {
    prediction: &'p Prediction<'p>,
    requests: &'p [Request],
}

struct RecordedRun {
    snapshot: Snapshot,
    /// True if an allocation failed.
    stopped: bool,
}

impl PredictedRun<'_> {
    fn record(&self, device: &DeviceConfig, at_failure: AtFailure) -> RecordedRun {
        let Prediction { locator, schedule, setup, .. } = self.prediction;
        let profile = locator.profile;
        let base = profile.base_time();
        let mut snapshot = Snapshot::default();
        self.name_streams(&mut snapshot);
        let mut stacks_of = Stacks::new(profile, schedule);
        let allocator = setup.choice.over(Device::new(device), EntryRecorder::default());
        let mut driver = ReplayDriver::new(allocator, schedule.workload(self.requests.len()));
        let mut stacks = Vec::with_capacity(self.requests.len());
        let mut stopped = false;
        for (row, request) in self.requests.iter().enumerate() {
            let stack = stacks_of.of_request(row, &mut snapshot);
            stacks.push(stack);
            driver.allocator_mut().observer_mut().enter(base + schedule.times[row], stack);
            let at = RequestIndex(row);
            if at_failure == AtFailure::LiftLimits {
                driver.serve_lifting_limits(at, request);
            } else if driver.serve(at, request).is_err() {
                stopped = true;
                break;
            }
        }
        let entries = driver.allocator_mut().observer_mut().take();
        annotations::annotate(profile, &span(&entries), &mut snapshot);
        snapshot.device_traces = vec![entries];
        snapshot.segments = segments(&driver, &stacks);
        snapshot.allocator_settings = Some(settings::settings(setup));
        RecordedRun { snapshot, stopped }
    }

    /// Streams have the numbers of the schedule for handles.
    fn name_streams(&self, snapshot: &mut Snapshot) {
        let streams = self.requests.iter().filter_map(|request| match request.kind {
            RequestKind::Alloc { stream, .. } => Some(stream.0),
            RequestKind::Free => None,
        });
        for stream in 0..=streams.max().unwrap_or(0) {
            snapshot.stream(StreamHandle(u64::from(stream)));
        }
    }
}

/// From the first to the last entry.
fn span(entries: &[TraceEntry]) -> Range<Nanos> {
    let time = |entry: Option<&TraceEntry>| entry.and_then(|entry| entry.time).unwrap_or_default();
    time(entries.first())..time(entries.last())
}

/// The segments at the end, with the stacks of the requests that made them and their blocks.
fn segments<A: FrameworkAllocator>(
    driver: &ReplayDriver<'_, A>,
    stacks: &[StackId],
) -> Vec<Segment> {
    let allocator = driver.allocator();
    let views = driver.live().map(|(_, handle)| allocator.block(handle));
    let born = views.map(|view| (view.addr, stacks[view.born.0]));
    let mut made: Vec<(Addr, StackId)> = born.collect();
    made.sort_unstable();
    let stack_at = |addr| {
        let found = made.binary_search_by_key(&addr, |&(addr, _)| addr);
        found.map_or(StackId::EMPTY, |row| made[row].1)
    };
    let segment = |state: SegmentState| {
        let kind = match state.pool {
            PoolKind::Small => SegmentKind::Small,
            PoolKind::Large => SegmentKind::Large,
        };
        let blocks = state.blocks.iter().map(|b| block(b, stack_at(b.addr))).collect();
        Segment {
            stream: state.stream,
            expandable: state.expandable,
            stack: stacks[allocator.segments()[state.segment.index()].born.0],
            ..Segment::new(DEVICE, state.addr, kind, blocks)
        }
    };
    allocator.state().into_iter().map(segment).collect()
}

fn block(state: &BlockState, stack: StackId) -> SnapshotBlock {
    let (used, stack) = match state.used {
        BlockUse::Allocated => (xmem_snapshot::BlockState::ActiveAllocated, stack),
        BlockUse::PendingFree => (xmem_snapshot::BlockState::ActivePendingFree, stack),
        BlockUse::Free => (xmem_snapshot::BlockState::Inactive, StackId::EMPTY),
    };
    let BlockState { addr: address, size, requested, .. } = *state;
    SnapshotBlock { address, size, requested: Some(requested), state: used, stack }
}
