//! A run of the prediction, with all that happens taken down.

use super::names::PathId;
use super::{
    DEEPEST, HeldBlock, MemoryAtFailure, MomentSpan, Timeline, TimelineBlock, TimelineMoment,
    TimelineSegment,
};
use crate::prediction::Prediction;
use crate::snapshot::SnapshotEnd;
use rustc_hash::FxHashMap;
use std::ops::Range;
use xmem_analyzer::Phase;
use xmem_simulator::{
    BlockHandle, Device, DeviceConfig, Event, EventAction, Framework, FrameworkAllocator, Mapping,
    ReplayDriver, RequestIndex, Segment, Served,
};
use xmem_types::{Addr, BlockId, Bytes, IterationId, OpId};

/// No row.
const NONE: u32 = u32::MAX;

impl Prediction<'_> {
    /// The predicted run up to the end of `iterations`, event by event. Where memory runs out, it ends with the request
    /// that fails, or goes on as on a device with space for all.
    #[must_use]
    pub fn timeline(&self, iterations: &Range<IterationId>, end: SnapshotEnd) -> Timeline {
        let within = self.requests_of(iterations);
        let (mut run, failed) = self.run(&self.device, within.end);
        let at_failure = failed.map(|_| held(&run));
        if let (Some(_), SnapshotEnd::Job) = (failed, end) {
            let ample = self.device.without_limit();
            run = self.run(&ample, within.end).0;
        }
        let until = run.moments.len();
        run.within = within.start.min(until) as u32..until as u32;
        run.out_of_memory = failed.map(|at| at as u32);
        run.at_failure = at_failure;
        run.phases = self.moment_spans(until);
        run.left_out = self.left_out(&mut run);
        run.failures = self.failures(&run);
        let highest = |value: fn(&TimelineMoment) -> Bytes| {
            let rows = run.within.clone();
            let better = |best: u32, at: u32| {
                let value = |at: u32| value(&run.moments[at as usize]);
                if value(at) > value(best) { at } else { best }
            };
            rows.reduce(better).unwrap_or_default()
        };
        let peaks = (highest(|moment| moment.allocated), highest(|moment| moment.reserved));
        (run.peak, run.reserved_peak) = peaks;
        run
    }

    /// The first `count` requests on a device, up to the one that fails.
    fn run(&self, device: &DeviceConfig, count: usize) -> (Timeline, Option<usize>) {
        let allocator = self.setup.choice.over(Device::new(device), Vec::new());
        let mut driver = ReplayDriver::new(allocator, self.schedule.workload(count));
        let mut recorder = Recorder::new(self);
        let mut failed = None;
        for (row, request) in self.requests()[..count].iter().enumerate() {
            let at = RequestIndex(row);
            let served = if device.capacity.is_none() {
                driver.serve_lifting_limits(at, request)
            } else {
                let Ok(served) = driver.serve(at, request) else {
                    failed = Some(row);
                    break;
                };
                served
            };
            let events = std::mem::take(driver.allocator_mut().observer_mut());
            recorder.completed(row as u32, &events);
            match served {
                Served::Allocated(handle) => {
                    recorder.allocated(row as u32, request.block, driver.allocator(), handle);
                }
                Served::Freed => recorder.freed(row as u32, request.block, &events),
                Served::Nothing => {}
            }
            recorder.moment(row, driver.allocator());
        }
        (recorder.finish(driver.allocator()), failed)
    }

    /// The phases of the first `count` requests.
    fn moment_spans(&self, count: usize) -> Vec<MomentSpan> {
        let mut spans: Vec<MomentSpan> = Vec::new();
        for (row, &time) in self.schedule.times[..count].iter().enumerate() {
            let span = self.locator.profile.phase_at(time);
            let phase = span.map_or(Phase::Init, |span| span.phase);
            let part = self.locator.profile.part_in_rest(time);
            let iteration = span.filter(|_| part.is_none()).and_then(|span| span.iteration);
            let row = row as u32;
            match spans.last_mut() {
                Some(last)
                    if (last.phase, last.iteration, last.part) == (phase, iteration, part) =>
                {
                    last.moments.end = row + 1;
                }
                _ => spans.push(MomentSpan { phase, iteration, part, moments: row..row + 1 }),
            }
        }
        spans
    }
}

/// The memory at the end of a run.
fn held(run: &Timeline) -> MemoryAtFailure {
    let blocks = run.blocks.iter().zip(0..).filter(|(block, _)| block.end.is_none());
    let segments = run.segments.iter().filter(|segment| segment.end.is_none());
    MemoryAtFailure {
        blocks: blocks
            .map(|(block, row)| HeldBlock { row, addr: block.addr, size: block.size })
            .collect(),
        segments: segments.copied().collect(),
    }
}

struct Recorder<'p> {
    prediction: &'p Prediction<'p>,
    timeline: Timeline,
    /// The row of each block by its number.
    rows: Vec<u32>,
    /// Blocks that are freed and wait for another stream, by address.
    pending: FxHashMap<Addr, u32>,
    pending_bytes: Bytes,
    requested: Bytes,
    paths: FxHashMap<OpId, PathId>,
}

impl<'p> Recorder<'p> {
    fn new(prediction: &'p Prediction<'p>) -> Self {
        Self {
            prediction,
            timeline: Timeline::default(),
            rows: vec![NONE; prediction.block_count()],
            pending: FxHashMap::default(),
            pending_bytes: Bytes::ZERO,
            requested: Bytes::ZERO,
            paths: FxHashMap::default(),
        }
    }

    fn allocated(
        &mut self,
        moment: u32,
        id: BlockId,
        allocator: &impl FrameworkAllocator,
        handle: BlockHandle,
    ) {
        let view = allocator.block(handle);
        let Prediction { locator, schedule, .. } = self.prediction;
        let profile = locator.profile;
        let block = schedule.block(id);
        let recorded = block.origin.recorded().map(|id| profile.block(id));
        let place = block.origin.place(profile);
        let op = place.op.map(|op| profile.asking_op(op));
        let path = op.map(|op| self.path(op)).unwrap_or_default();
        let names = &mut self.timeline.names;
        self.rows[id.index()] = self.timeline.blocks.len() as u32;
        self.requested += view.requested;
        self.timeline.blocks.push(TimelineBlock {
            id,
            requested: view.requested,
            size: view.size,
            addr: view.addr,
            segment: Some(view.segment.0),
            stream: view.stream,
            start: moment,
            freed: None,
            end: None,
            role: block.role,
            evidence: recorded.map_or("", |block| block.evidence.0),
            rule: block.rule.map(|rule| rule.name),
            recorded: recorded.map(|block| block.size),
            phase: place.phase,
            iteration: place.iteration,
            path,
            op: op.map(|op| names.text_id(profile.op_name(op))).unwrap_or_default(),
            module: names.text_id(profile.text(place.module)),
            line: names.text_id(profile.text(place.line)),
        });
    }

    /// The operators around and with `op`, the outermost [`DEEPEST`] of them.
    fn path(&mut self, op: OpId) -> PathId {
        let profile = self.prediction.locator.profile;
        let names = &mut self.timeline.names;
        // From `op` outwards. What lies deeper than the limit has the path of what lies at it.
        let mut around: Vec<OpId> = Vec::new();
        for outer in profile.tree.path(op) {
            if let Some(&known) = self.paths.get(&outer)
                && (outer == op || names.path(known).len() == DEEPEST)
            {
                self.paths.extend(around.into_iter().map(|inner| (inner, known)));
                return known;
            }
            around.push(outer);
        }
        let beyond = around.len().saturating_sub(DEEPEST);
        let kept = around[beyond..].iter().rev();
        let path = kept.map(|&op| names.text_id(profile.op_name(op))).collect();
        let id = names.path_id(path);
        self.paths.extend(around[..=beyond].iter().map(|&inner| (inner, id)));
        id
    }

    fn freed(&mut self, moment: u32, id: BlockId, events: &[Event]) {
        let row = std::mem::replace(&mut self.rows[id.index()], NONE);
        let Some(block) = self.timeline.blocks.get_mut(row as usize) else { return };
        block.freed = Some(moment);
        self.requested = self.requested.saturating_sub(block.requested);
        let addr = block.addr;
        let has = |action| events.iter().any(|event| (event.action, event.addr) == (action, addr));
        let is_waiting = has(EventAction::FreeRequested) && !has(EventAction::FreeCompleted);
        if is_waiting {
            self.pending_bytes += block.size;
            self.pending.insert(block.addr, row);
        } else {
            block.end = Some(moment);
        }
    }

    /// Frees that waited are complete.
    fn completed(&mut self, moment: u32, events: &[Event]) {
        if self.pending.is_empty() {
            return;
        }
        let completed = |event: &&Event| event.action == EventAction::FreeCompleted;
        for event in events.iter().filter(completed) {
            if let Some(row) = self.pending.remove(&event.addr) {
                let block = &mut self.timeline.blocks[row as usize];
                block.end = Some(moment);
                self.pending_bytes = self.pending_bytes.saturating_sub(block.size);
            }
        }
    }

    fn moment(&mut self, row: usize, allocator: &impl FrameworkAllocator) {
        let allocated = allocator.allocated();
        self.timeline.moments.push(TimelineMoment {
            time: self.prediction.schedule.times[row],
            allocated,
            active: allocated + self.pending_bytes,
            requested: self.requested,
            reserved: allocator.reserved(),
        });
    }

    fn finish(self, allocator: &impl FrameworkAllocator) -> Timeline {
        let mut timeline = self.timeline;
        let (segments, mappings) = (allocator.segments(), allocator.mappings());
        let whole = segments.iter().enumerate().filter(|(_, segment)| !segment.expandable);
        let whole = whole.map(|(row, segment)| (Some(row), span(segment, None)));
        let mapped = mappings
            .iter()
            .map(|mapping| (None, span(&segments[mapping.segment.index()], Some(mapping))));
        let mut spans: Vec<(Option<usize>, TimelineSegment)> = whole.chain(mapped).collect();
        spans.sort_by_key(|(_, span)| (span.start, span.addr));
        timeline.segments = spans.iter().map(|(_, span)| *span).collect();
        let mut row_of = vec![None; segments.len()];
        for (row, (segment, _)) in spans.iter().enumerate() {
            if let Some(segment) = *segment {
                row_of[segment] = Some(row as u32);
            }
        }
        let ranges = Mapped::new(&timeline.segments);
        for block in &mut timeline.blocks {
            let number = block.segment.unwrap_or(NONE) as usize;
            let whole = row_of.get(number).copied().flatten();
            block.segment = whole.or_else(|| ranges.around(block.addr, block.start));
        }
        timeline
    }
}

fn span(segment: &Segment, mapping: Option<&Mapping>) -> TimelineSegment {
    let (addr, size) = mapping.map_or((segment.addr, segment.size), |part| (part.addr, part.size));
    let (born, died) = mapping.map_or((segment.born, segment.died), |part| (part.born, part.died));
    TimelineSegment {
        addr,
        size,
        stream: segment.stream,
        pool: segment.pool,
        private_pool: segment.private_pool,
        expandable: segment.expandable,
        start: born.0 as u32,
        end: died.map(|at| at.0 as u32),
    }
}

/// Mapped ranges by address.
struct Mapped<'t> {
    rows: Vec<(Addr, u32)>,
    segments: &'t [TimelineSegment],
}

impl<'t> Mapped<'t> {
    fn new(segments: &'t [TimelineSegment]) -> Self {
        let expandable = segments.iter().enumerate().filter(|(_, segment)| segment.expandable);
        let mut rows: Vec<(Addr, u32)> =
            expandable.map(|(row, segment)| (segment.addr, row as u32)).collect();
        rows.sort_unstable();
        Self { rows, segments }
    }

    /// The range with this address at a moment.
    fn around(&self, addr: Addr, moment: u32) -> Option<u32> {
        let until = self.rows.partition_point(|&(start, _)| start <= addr);
        let holds = |&&(start, row): &&(Addr, u32)| {
            let segment = &self.segments[row as usize];
            addr.0 - start.0 < segment.size.get()
                && segment.start <= moment
                && segment.end.is_none_or(|end| moment < end)
        };
        self.rows[..until].iter().rev().find(holds).map(|&(_, row)| row)
    }
}
