//! A memory snapshot as a job: its history as blocks with lifetimes and call stacks.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use xmem_analyzer::integrity::SnapshotEvidence;
use xmem_analyzer::{
    GpuRecording, GpuSource, History, HistoryBlock, HistoryPart, HistoryPurpose, HistorySite,
    Phase, PrivatePools, RecordedFailure, Role, Tick,
};
use xmem_predict::JobEnvironment;
use xmem_snapshot::{
    Action, AllocatorSettings, BlockState, CallPart, DeviceIndex, HistoryStep, PoolId, Purpose,
    ReleaseChoice, Reuse, Site, Snapshot, StackId, StepKind, TraceEntry,
};
use xmem_types::{
    Addr, Bytes, Diagnostics, IterationId, Nanos, PrivatePoolId, Severity, StreamId, TorchVersion,
    WithheldReason,
};

/// The devices with memory, that which reserved most first.
pub(crate) fn devices(snapshot: &Snapshot) -> Vec<DeviceIndex> {
    let traced = (0..snapshot.device_traces.len() as u32).map(DeviceIndex);
    let segments = snapshot.segments.iter().map(|segment| segment.device);
    let all = traced.filter(|&device| !snapshot.trace(device).is_empty()).chain(segments);
    let all: BTreeSet<DeviceIndex> = all.collect();
    let mut all: Vec<DeviceIndex> = all.into_iter().collect();
    all.sort_by_cached_key(|&device| Reverse(snapshot.usage(device).0.reserved.peak));
    all
}

/// Notes that a snapshot has memory of several devices, of which the first is shown.
pub(crate) fn report_several(devices: &[DeviceIndex], notes: &mut Diagnostics) {
    let [DeviceIndex(first), _, ..] = devices else { return };
    notes.report("several-gpus", Severity::Note, None, || {
        format!(
            "the snapshot has memory of {} GPUs: that of GPU {first} is shown, which reserved most",
            devices.len()
        )
    });
}

/// The history of one of so many devices.
pub(crate) fn of_snapshot(
    snapshot: &Snapshot,
    (device, devices): (DeviceIndex, usize),
    notes: &mut Diagnostics,
) -> History {
    let trace = &snapshot.trace(device)[snapshot.first_complete_entry(device)..];
    let doubts = snapshot.doubts(device, trace);
    let structure = snapshot.structure(device, trace);
    let impossible = doubts.iter().map(|doubt| doubt.count).fold(0, u64::saturating_add);
    let evidence = SnapshotEvidence {
        contradicting: structure.contradicting,
        impossible: (impossible, trace.len() as u64),
        sums: structure.sums,
        blocks: structure.blocks,
        segments: structure.segments,
        unexplained: structure.unexplained,
        live_address: (0, 0),
    };
    notes.extend(doubts);
    let (usage, odd) = snapshot.usage(device);
    notes.extend(odd);
    let mut gpu = GpuRecording::new(GpuSource::Snapshot);
    gpu.index = i16::try_from(device.0).unwrap_or(i16::MAX);
    gpu.devices = devices;
    gpu.peak_requested = Some(usage.requested.peak);
    gpu.peak_reserved = Some(usage.reserved.peak);
    gpu.reserved_before = Some(usage.reserved.start);
    let base_time = trace.iter().find_map(|entry| entry.time);
    let mut reader = Reader {
        snapshot,
        device,
        trace,
        base: base_time.unwrap_or_default(),
        now: Nanos::ZERO,
        sites: Sites::default(),
        earlier: Vec::new(),
        blocks: Vec::new(),
        live: FxHashMap::default(),
        pending: FxHashMap::default(),
        pools: private_pools(snapshot, device, trace, notes),
        releases: Vec::new(),
        pool_releases: Vec::new(),
        released_pools: BTreeSet::new(),
        waited: 0,
        lost_frees: 0,
        failed: Vec::new(),
        evidence,
    };
    for (tick, step) in snapshot.steps(trace, choice(snapshot)).iter().enumerate() {
        reader.step(Tick(tick as u32), step);
    }
    reader.keep_what_is_left();
    reader.report(&gpu, notes);
    gpu.from_the_start = reader.has_history() && reader.begins_at_zero(&gpu);
    about_pools(snapshot, device, notes);
    reader.finish(gpu, base_time, notes)
}

/// The environment that a snapshot states: the options of its allocator, and the release by the keys
/// that it has.
pub(crate) fn environment(snapshot: &Snapshot, notes: &mut Diagnostics) -> JobEnvironment {
    let (first, last) = snapshot.releases();
    if first != last {
        notes.report("release-by-keys", Severity::Note, None, || {
            format!(
                "the snapshot was written by PyTorch {first} or later: the allocator of {last} is \
                 assumed; --torch chooses another"
            )
        });
    }
    let oldest = TorchVersion::new(2, 0);
    let mut environment =
        JobEnvironment { torch: Some(last.to_string()), ..JobEnvironment::default() };
    if let Some(settings) = snapshot.allocator_settings.as_ref().filter(|_| last >= oldest) {
        let text = settings.text.clone().unwrap_or_else(|| options(settings));
        environment.variables.push(("PYTORCH_CUDA_ALLOC_CONF".to_owned(), text));
    }
    environment
}

/// The options that are in force, where the text of them is not there (before PyTorch 2.3).
fn options(settings: &AllocatorSettings) -> String {
    let mut options = Vec::new();
    if settings.expandable_segments {
        options.push("expandable_segments:True".to_owned());
    }
    if let Some(size) = settings.max_split_size {
        options.push(format!("max_split_size_mb:{}", size.get() >> 20));
    }
    if settings.garbage_collection_threshold > 0.0 {
        let threshold = settings.garbage_collection_threshold;
        options.push(format!("garbage_collection_threshold:{threshold}"));
    }
    options.join(",")
}

fn choice(snapshot: &Snapshot) -> ReleaseChoice {
    let choosy = snapshot.allocator_settings.as_ref().is_some_and(|settings| {
        settings.max_split_size.is_some() || settings.garbage_collection_threshold > 0.0
    });
    if choosy { ReleaseChoice::Some } else { ReleaseChoice::All }
}

fn about_pools(snapshot: &Snapshot, device: DeviceIndex, notes: &mut Diagnostics) {
    let of_pools = snapshot.segments.iter().filter(|segment| segment.device == device);
    let count = of_pools.filter(|segment| segment.pool != PoolId::default()).count() as u64;
    notes.report_many("private-pools", Severity::Note, None, count, || {
        "segments belong to CUDA graphs or to a `MemPool`, and are replayed in separate pools; a pool that \
         was deleted before the snapshot is not in it"
            .into()
    });
}

/// The private pools of a device. The history does not have the pool of an allocation; the segments of the
/// snapshot do.
fn private_pools(
    snapshot: &Snapshot,
    device: DeviceIndex,
    trace: &[TraceEntry],
    notes: &mut Diagnostics,
) -> PrivatePools {
    let range = |start: Addr, size: Bytes| start..Addr(start.0.saturating_add(size.get()));
    let segments = snapshot.segments.iter();
    let private = segments.filter(|s| s.device == device && s.pool != PoolId::default());
    let seen = private.map(|s| (trace.len(), range(s.address, s.total), (s.pool.0, s.pool.1)));
    let entries = trace.iter().enumerate();
    let released = entries
        .filter(|(_, entry)| matches!(entry.action, Action::SegmentFree | Action::SegmentUnmap))
        .map(|(position, entry)| (position, range(entry.addr, entry.size)));
    PrivatePools::new(seen.collect(), released.collect(), trace.len()).unwrap_or_else(|| {
        notes.report("private-pools-not-followed", Severity::Warning, None, || {
            "the snapshot has too many segments of private pools: the replay serves their blocks as all \
             others, and may reserve less"
                .into()
        });
        PrivatePools::default()
    })
}

/// A block that is allocated, by its row.
#[derive(Clone, Copy)]
struct Live(usize);

/// Reads the steps of a program into blocks.
struct Reader<'s> {
    snapshot: &'s Snapshot,
    device: DeviceIndex,
    trace: &'s [TraceEntry],
    /// The time of the first entry.
    base: Nanos,
    now: Nanos,
    sites: Sites,
    /// Blocks that were allocated before the history: their addresses and sizes, streams, stacks, and frees.
    earlier: Vec<Earlier>,
    blocks: Vec<HistoryBlock>,
    live: FxHashMap<Addr, Live>,
    /// Blocks that are freed and wait for another stream.
    pending: FxHashMap<Addr, Live>,
    pools: PrivatePools,
    releases: Vec<Tick>,
    pool_releases: Vec<(Tick, PrivatePoolId)>,
    released_pools: BTreeSet<PrivatePoolId>,
    /// Frees that waited.
    waited: u64,
    /// Frees that were not recorded.
    lost_frees: u64,
    failed: Vec<RecordedFailure>,
    evidence: SnapshotEvidence,
}

struct Earlier {
    address: Addr,
    size: Bytes,
    stream: StreamId,
    pool: Option<PrivatePoolId>,
    stack: StackId,
    free: Option<(Tick, Nanos)>,
}

impl Reader<'_> {
    fn step(&mut self, tick: Tick, step: &HistoryStep) {
        let last = &self.trace[step.entries.end - 1];
        if let Some(time) = last.time {
            self.now = self.now.max(Nanos(time.get().saturating_sub(self.base.get())));
        }
        for entry in &self.trace[step.entries.clone()] {
            if entry.action == Action::FreeCompleted
                && let Some(Live(row)) = self.pending.remove(&entry.addr)
            {
                self.blocks[row].completed = Some(tick);
            }
        }
        let at = (tick, self.now);
        match step.kind {
            StepKind::Alloc { addr, size, stream, .. } => {
                if let Some(Live(row)) = self.pending.remove(&addr) {
                    self.blocks[row].completed = Some(tick);
                }
                let pool = self.pools.at(addr, step.entries.end - 1);
                let site = self.sites.row(self.snapshot, last.stack);
                let block = HistoryBlock {
                    size,
                    address: addr,
                    stream,
                    pool,
                    alloc: at,
                    free: None,
                    completed: None,
                    site,
                    freed_in: None,
                };
                let row = self.blocks.len();
                self.blocks.push(block);
                if let Some(Live(before)) = self.live.insert(addr, Live(row)) {
                    self.blocks[before].free = Some(at);
                    self.lost_frees += 1;
                }
            }
            StepKind::Free { addr, reuse } => {
                let Some(live) = self.live.remove(&addr) else {
                    let entry = &self.trace[step.entries.start..step.entries.end];
                    let entry = entry.iter().find(|entry| entry.addr == addr).unwrap_or(last);
                    self.earlier.push(Earlier {
                        address: addr,
                        size: entry.size,
                        stream: entry.stream,
                        pool: self.pools.at(addr, step.entries.start),
                        stack: StackId::EMPTY,
                        free: Some(at),
                    });
                    return;
                };
                self.blocks[live.0].free = Some(at);
                self.blocks[live.0].freed_in = Some(part_of(self.snapshot, last.stack));
                if reuse == Reuse::Later {
                    self.waited += 1;
                    self.blocks[live.0].completed = Some(Tick::NEVER);
                    self.pending.insert(addr, live);
                }
            }
            StepKind::Complete { .. } => {}
            StepKind::EmptyCache => self.release(tick, step.entries.clone()),
            StepKind::Failed { rounded, .. } => {
                let free = |entry: &TraceEntry| match entry.action {
                    Action::OutOfMemory { device_free } => Some(device_free),
                    _ => None,
                };
                let device_free = self.trace[step.entries.clone()].iter().find_map(free);
                self.failed.push(RecordedFailure { time: self.now, size: rounded, device_free });
            }
        }
    }

    /// Segments are released outside of an allocation: by `empty_cache`, or with the pool that they belong to.
    fn release(&mut self, tick: Tick, entries: Range<usize>) {
        let mut everything = false;
        for row in entries {
            let entry = &self.trace[row];
            if !matches!(entry.action, Action::SegmentFree | Action::SegmentUnmap) {
                continue;
            }
            match self.pools.at(entry.addr, row) {
                Some(pool) if self.released_pools.insert(pool) => {
                    self.pool_releases.push((tick, pool));
                }
                // Another segment of that pool.
                Some(pool) if self.pool_releases.contains(&(tick, pool)) => {}
                _ => everything = true,
            }
        }
        if everything {
            self.releases.push(tick);
        }
    }

    /// What segments hold and the history did not allocate was there before.
    fn keep_what_is_left(&mut self) {
        let segments = self.snapshot.segments.iter().filter(|s| s.device == self.device);
        for segment in segments {
            let held = segment.blocks.iter().filter(|b| b.state == BlockState::ActiveAllocated);
            for block in held.filter(|block| !self.live.contains_key(&block.address)) {
                self.earlier.push(Earlier {
                    address: block.address,
                    size: block.requested.unwrap_or(block.size),
                    stream: segment.stream,
                    pool: self.pools.at(block.address, self.trace.len()),
                    stack: block.stack,
                    free: None,
                });
            }
        }
        self.earlier.sort_by_key(|block| (block.address, block.free.map(|free| free.0)));
    }

    fn has_history(&self) -> bool {
        self.trace.iter().any(|entry| entry.action == Action::Alloc)
    }

    /// Returns whether nothing was there when the history began, and nothing of it is missing.
    fn begins_at_zero(&self, gpu: &GpuRecording) -> bool {
        self.trace.len() == self.snapshot.trace(self.device).len()
            && gpu.reserved_before == Some(Bytes::ZERO)
            && self.earlier.is_empty()
    }

    fn report(&self, gpu: &GpuRecording, notes: &mut Diagnostics) {
        let has_history = self.has_history();
        let before: u64 = self.earlier.iter().map(|b| b.size.get()).fold(0, u64::saturating_add);
        if !has_history {
            notes.report("no-history", Severity::Warning, None, || {
                "the snapshot has no history: the job needs at least the memory at its moment; record \
                 with `torch.cuda.memory._record_memory_history()`"
                    .into()
            });
        } else if !self.begins_at_zero(gpu) {
            notes.report("late-history", Severity::Warning, None, || {
                "the history of the snapshot begins after memory was reserved, or lacks its beginning: the job \
                 needs at least what it shows; call `torch.cuda.memory._record_memory_history()` before the \
                 model is made, with enough `max_entries`"
                    .into()
            });
        }
        if has_history && !self.earlier.is_empty() {
            notes.report("allocated-before", Severity::Note, None, || {
                let bytes = Bytes(before);
                format!(
                    "{bytes} were allocated before the history began; they count from the start, in the \
                     order of their addresses"
                )
            });
        }
        notes.report_many("frees-waited", Severity::Note, None, self.waited, || {
            "blocks were freed while another stream used them: their memory was reused when that stream was \
             done, as recorded"
                .into()
        });
        let failed = self.failed.len() as u64;
        notes.report_many("recorded-out-of-memory", Severity::Warning, None, failed, || {
            "allocations failed in the recorded job, and are left out of the replay: what it would have \
             done with more memory is not recorded"
                .into()
        });
        notes.report_many("cache-released", Severity::Note, None, self.releases.len() as u64, || {
            "cached memory was released (`empty_cache`); the replay releases it at the same places"
                .into()
        });
    }

    fn finish(
        mut self,
        mut gpu: GpuRecording,
        base_time: Option<Nanos>,
        notes: &mut Diagnostics,
    ) -> History {
        let offset = self.earlier.len() as u32;
        let later = |(Tick(tick), time): (Tick, Nanos)| (Tick(tick.saturating_add(offset)), time);
        let mut blocks = Vec::with_capacity(self.earlier.len() + self.blocks.len());
        for (row, block) in self.earlier.iter().enumerate() {
            blocks.push(HistoryBlock {
                size: block.size,
                address: block.address,
                stream: block.stream,
                pool: block.pool,
                alloc: (Tick(row as u32), Nanos::ZERO),
                free: block.free.map(later),
                completed: None,
                site: self.sites.row(self.snapshot, block.stack),
                freed_in: None,
            });
        }
        blocks.extend(self.blocks.into_iter().map(|block| HistoryBlock {
            alloc: later(block.alloc),
            free: block.free.map(later),
            completed: block.completed.map(|tick| later((tick, Nanos::ZERO)).0),
            ..block
        }));
        if blocks.is_empty() {
            notes.withhold(WithheldReason::NoMemoryEvents, 1, || {
                "the snapshot has no blocks and no history: take it while the job runs".into()
            });
        }
        gpu.earlier = self.earlier.len();
        let sizes = self.earlier.iter().map(|block| block.size.get());
        gpu.allocated_before = Bytes(sizes.fold(0, u64::saturating_add));
        gpu.cache_releases = self.releases.iter().map(|tick| Tick(tick.0 + offset)).collect();
        let releases = self.pool_releases.iter();
        gpu.pool_releases = releases.map(|&(Tick(at), pool)| (Tick(at + offset), pool)).collect();
        gpu.out_of_memory = self.failed;
        self.evidence.live_address = (self.lost_frees, blocks.len() as u64);
        History { blocks, sites: self.sites.finish(), base_time, gpu, evidence: self.evidence }
    }
}

/// The calls of a history, each once.
#[derive(Default)]
struct Sites {
    rows: BTreeMap<StackId, usize>,
    list: Vec<HistorySite>,
    /// Rows of sites in `Module._apply`, with its lines.
    applied: Vec<(usize, u32)>,
}

impl Sites {
    fn row(&mut self, snapshot: &Snapshot, stack: StackId) -> usize {
        *self.rows.entry(stack).or_insert_with(|| {
            let Site { op, line, caller } = Site::of(snapshot, stack);
            if let CallPart::Apply { line } = CallPart::of(snapshot, stack) {
                self.applied.push((self.list.len(), line));
            }
            let part = part_of(snapshot, stack);
            let purpose = Purpose::of(snapshot, stack).and_then(purpose);
            self.list.push(HistorySite { op, line: caller.or(line), part, purpose });
            self.list.len() - 1
        })
    }

    /// All sites. `Module._apply` converts buffers behind parameters.
    fn finish(mut self) -> Vec<HistorySite> {
        let lines: BTreeSet<u32> = self.applied.iter().map(|&(_, line)| line).collect();
        if lines.len() > 1
            && let Some(&last) = lines.last()
        {
            for &(row, _) in self.applied.iter().filter(|&&(_, line)| line == last) {
                self.list[row].part = HistoryPart::Buffers;
            }
        }
        self.list
    }
}

/// What the snapshot of a predicted run says; none if it is of another version.
fn purpose(of: Purpose<'_>) -> Option<HistoryPurpose> {
    let phase = Phase::ALL.into_iter().find(|phase| Some(phase.name()) == of.phase)?;
    let role = Role::ALL.into_iter().find(|role| role.name() == of.role)?;
    Some(HistoryPurpose { role, phase, iteration: of.iteration.map(IterationId) })
}

fn part_of(snapshot: &Snapshot, stack: StackId) -> HistoryPart {
    match CallPart::of(snapshot, stack) {
        CallPart::Workspace => HistoryPart::Workspace,
        CallPart::ZeroGrad => HistoryPart::Phase(Phase::ZeroGrad),
        CallPart::Optimizer => HistoryPart::Phase(Phase::OptimizerStep),
        CallPart::Backward => HistoryPart::Phase(Phase::Backward),
        CallPart::Data => HistoryPart::Phase(Phase::Data),
        CallPart::Forward => HistoryPart::Phase(Phase::Forward),
        CallPart::Init | CallPart::Apply { .. } => HistoryPart::Parameters,
        CallPart::Unknown => HistoryPart::Unknown,
        CallPart::NoFrame => HistoryPart::NoFrame,
    }
}
