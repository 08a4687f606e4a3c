//! The blocks of a script after the iterations that the profiler recorded: from the allocator's history alone, behind all
//! others.
//!
//! They have no operators and modules. A block is taken for what the last one of its size and line was in the recorded
//! iterations.

use crate::block::{Block, Evidence, Residency, Role};
use crate::gpu::GpuRecording;
use crate::lifetime::Tick;
use crate::private_pools::{PrivatePools, Releases};
use crate::recording::{
    AllocatorHistory, DeviceHistory, HistoryAction, HistoryEntry, RestOfDevice, ScriptRest,
};
use crate::script_part::{PartStart, ScriptPart};
use crate::spans::Phase;
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_types::{
    Addr, Bytes, Diagnostics, Interner, Nanos, PrivatePoolId, Severity, StreamId, Sym, ThreadIdx,
};

const LIKE: Evidence = Evidence("has the size and the line of a block of the recorded iterations");
const NOT_SHOWN: Evidence = Evidence("made after the recorded iterations");

/// Where the rest of a script begins among the blocks of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestStart {
    /// The first position: blocks that are allocated there or later, and frees there or later, are of the rest.
    pub tick: Tick,
    /// Its time, which is later than that of all before.
    pub time: Nanos,
}

/// Appends the rest of a script to the blocks of a recording: `end` are the position and the time behind those. An error if
/// the history contradicts the blocks, which are then as before.
pub(crate) fn append(
    rest: &ScriptRest,
    end: (Tick, Nanos),
    (blocks, gpu): (&mut Vec<Block>, &mut GpuRecording),
    recorded: &AllocatorHistory,
    strings: &mut Interner,
    notes: &mut Diagnostics,
) -> Result<Appended, Contradiction> {
    let device = rest.devices.iter().find(|device| device.history.index == gpu.index);
    let start = RestStart { tick: end.0, time: end.1 };
    // Nothing was allocated or freed on it.
    let Some(device) = device else { return Ok(Appended { start, parts: Vec::new() }) };
    let places: Vec<Sym> = rest.places.iter().map(|place| strings.intern(place)).collect();
    let before = recorded.devices.iter().find(|device| device.index == gpu.index);
    let nothing = DeviceHistory::default();
    let recorded = (&blocks[..], &*gpu, before.unwrap_or(&nothing));
    let continued = Continuation::new(device, start, recorded, &places).and_then(Continuation::run);
    let continued = match continued {
        Ok(continued) => continued,
        Err(why) => {
            notes.report("rest-unused", Severity::Warning, None, || {
                format!(
                    "what follows the recorded iterations is not used ({why}): the answer is about those alone"
                )
            });
            return Err(Contradiction);
        }
    };
    for (row, freed) in continued.freed {
        let block = &mut blocks[row];
        (block.free, block.free_time) = (Some(freed.tick), Some(freed.time));
        block.completed = freed.completed;
    }
    blocks.extend(continued.blocks);
    gpu.cache_releases.extend(continued.releases.cache);
    gpu.pool_releases.extend(continued.releases.pools);
    if let Some((allocated, reserved)) = rest.counted_peaks.filter(|_| gpu.devices == 1) {
        let most = |known: &mut Option<Bytes>, counted| *known = known.map(|k| k.max(counted));
        most(&mut gpu.peak_allocated, allocated);
        most(&mut gpu.peak_reserved, reserved);
    }
    let parts = device.parts.iter().map(|&(part, since, _)| PartStart {
        time: Nanos(start.time.get().saturating_add(since.get())),
        part,
    });
    let parts = parts.collect();
    Ok(Appended { start, parts })
}

/// The rest that was appended.
pub(crate) struct Appended {
    /// Where it begins.
    pub(crate) start: RestStart,
    /// The parts of the script from there on.
    pub(crate) parts: Vec<PartStart>,
}

/// The history of the rest contradicts the blocks before it.
pub(crate) struct Contradiction;

/// A free of a block.
#[derive(Clone, Copy)]
struct Freed {
    tick: Tick,
    time: Nanos,
    /// The position before which it was complete, if it waited for other streams.
    completed: Option<Tick>,
}

/// What the history adds to the blocks of a recording.
struct Continuation<'a> {
    device: &'a RestOfDevice,
    start: RestStart,
    pools: PrivatePools,
    /// The numbers of the streams of the history among those of the recorded iterations.
    streams: Vec<StreamId>,
    places: &'a [Sym],
    /// The number of blocks before.
    before: usize,
    /// Rows of blocks that are allocated, and of those that are freed and wait, by their addresses.
    live: FxHashMap<Addr, usize>,
    waiting: FxHashMap<Addr, usize>,
    /// Addresses that were allocated on threads that the profiler does not see.
    unseen: FxHashSet<Addr>,
    /// Blocks of the recorded iterations, the last one of each size and line.
    like: FxHashMap<(Bytes, Sym), &'a Block>,
    thread: ThreadIdx,
    blocks: Vec<Block>,
    freed: FxHashMap<usize, Freed>,
    releases: Releases,
}

/// What came of it.
struct Continued {
    blocks: Vec<Block>,
    freed: FxHashMap<usize, Freed>,
    releases: Releases,
}

impl<'a> Continuation<'a> {
    fn new(
        device: &'a RestOfDevice,
        start: RestStart,
        (blocks, gpu, recorded): (&'a [Block], &GpuRecording, &DeviceHistory),
        places: &'a [Sym],
    ) -> Result<Self, &'static str> {
        let history = &device.history;
        let pools = PrivatePools::of(history, Some(recorded))
            .ok_or("it has too many segments of private pools")?;
        let mut streams = recorded.streams.clone();
        let number = |handle: &Addr| {
            let known = streams.iter().position(|known| known == handle);
            StreamId::new(known.unwrap_or_else(|| {
                streams.push(*handle);
                streams.len() - 1
            }))
        };
        let streams = history.streams.iter().map(number).collect();
        let live = blocks.iter().enumerate().filter(|(_, block)| block.free.is_none());
        let live: FxHashMap<Addr, usize> = live.map(|(row, block)| (block.address, row)).collect();
        let mut unseen = FxHashSet::default();
        for entry in &recorded.entries {
            match entry.action {
                HistoryAction::Alloc => drop(unseen.insert(entry.address)),
                HistoryAction::Freed | HistoryAction::FreeRequested => {
                    unseen.remove(&entry.address);
                }
                _ => {}
            }
        }
        unseen.retain(|address| !live.contains_key(address));
        let waiting =
            blocks.iter().enumerate().filter(|(_, block)| block.completed == Some(Tick::NEVER));
        let iterated = blocks.iter().filter(|block| block.iteration.is_some());
        Ok(Self {
            device,
            start,
            pools,
            streams,
            places,
            before: blocks.len(),
            live,
            waiting: waiting.map(|(row, block)| (block.address, row)).collect(),
            unseen,
            like: iterated.map(|block| ((block.size, block.line), block)).collect(),
            thread: blocks.last().map_or(ThreadIdx::new(0), |block| block.thread),
            blocks: Vec::new(),
            freed: FxHashMap::default(),
            releases: Releases::after(gpu),
        })
    }

    fn run(mut self) -> Result<Continued, &'static str> {
        let device = self.device;
        let mut parts = device.parts.iter().peekable();
        let (mut part, mut time) = (ScriptPart::Training, self.start.time);
        let mut tick = self.start.tick;
        for (position, entry) in device.history.entries.iter().enumerate() {
            while let Some(&(next, since, _)) = parts.next_if(|(.., first)| *first <= position) {
                part = next;
                time = time.max(Nanos(self.start.time.get().saturating_add(since.get())));
            }
            time = Nanos(time.get().saturating_add(1));
            if self.entry(position, entry, part, (tick, time))? {
                let next = tick.0.checked_add(1).filter(|next| *next < Tick::NEVER.0);
                tick = Tick(next.ok_or("it is too long")?);
            }
        }
        let Self { blocks, freed, releases, .. } = self;
        Ok(Continued { blocks, freed, releases })
    }

    /// Handles an entry; returns whether it is an allocation or a free, which have positions of their own.
    fn entry(
        &mut self,
        position: usize,
        entry: &HistoryEntry,
        part: ScriptPart,
        (tick, time): (Tick, Nanos),
    ) -> Result<bool, &'static str> {
        match entry.action {
            HistoryAction::Alloc => {
                self.complete(entry.address, tick);
                let row = self.before + self.blocks.len();
                if self.live.insert(entry.address, row).is_some() {
                    return Err("an address is allocated twice");
                }
                let pool = self.pools.at(entry.address, position);
                let block = self.block(entry, part, pool, (tick, time));
                self.blocks.push(block);
            }
            HistoryAction::Freed | HistoryAction::FreeRequested => {
                let Some(row) = self.live.remove(&entry.address) else {
                    return match self.unseen.remove(&entry.address) {
                        true => Ok(true),
                        false => Err("a block is freed that was not allocated"),
                    };
                };
                let waits = entry.action == HistoryAction::FreeRequested;
                let completed = waits.then_some(Tick::NEVER);
                self.free(row, Freed { tick, time, completed });
                if waits {
                    self.waiting.insert(entry.address, row);
                }
            }
            HistoryAction::FreeCompleted => {
                self.complete(entry.address, tick);
                return Ok(false);
            }
            HistoryAction::SegmentFree => {
                self.releases.add(self.pools.at(entry.address, position), tick);
                return Ok(false);
            }
            HistoryAction::SegmentAlloc | HistoryAction::OutOfMemory => return Ok(false),
        }
        Ok(true)
    }

    fn free(&mut self, row: usize, freed: Freed) {
        match row.checked_sub(self.before) {
            Some(own) => {
                let block = &mut self.blocks[own];
                (block.free, block.free_time) = (Some(freed.tick), Some(freed.time));
                block.completed = freed.completed;
            }
            None => drop(self.freed.insert(row, freed)),
        }
    }

    fn complete(&mut self, address: Addr, tick: Tick) {
        let Some(row) = self.waiting.remove(&address) else { return };
        match row.checked_sub(self.before) {
            Some(own) => self.blocks[own].completed = Some(tick),
            None => {
                if let Some(freed) = self.freed.get_mut(&row) {
                    freed.completed = Some(tick);
                }
            }
        }
    }

    fn block(
        &self,
        entry: &HistoryEntry,
        part: ScriptPart,
        pool: Option<PrivatePoolId>,
        (tick, time): (Tick, Nanos),
    ) -> Block {
        let place = (entry.line as usize).checked_sub(1).and_then(|at| self.places.get(at));
        let line = place.copied().unwrap_or(Sym::EMPTY);
        let like = self.like.get(&(entry.size, line));
        // What is evaluated has no gradients.
        let like = like.filter(|_| part == ScriptPart::Training);
        Block {
            size: entry.size,
            address: entry.address,
            thread: self.thread,
            alloc: tick,
            alloc_time: time,
            free: None,
            free_time: None,
            stream: self.streams.get(entry.stream.index()).copied().unwrap_or_default(),
            pool,
            completed: None,
            op: None,
            freed_in: None,
            module: like.map_or(Sym::EMPTY, |like| like.module),
            line,
            iteration: None,
            phase: like.map_or(Phase::Init, |like| like.phase),
            role: like.map_or(Role::Unknown, |like| like.role),
            residency: Residency::Device,
            evidence: if like.is_some() { LIKE } else { NOT_SHOWN },
        }
    }
}
