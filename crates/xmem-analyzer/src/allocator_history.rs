//! The allocator's history beside a trace: streams, private pools, requested sizes, completions of frees and
//! releases of memory, which memory events do not have.
//!
//! The allocator writes an entry wherever it reports to the profiler, and in the same order
//! (c10/cuda/CUDACachingAllocator.cpp, `alloc_found_block` and `free`), so that the two are matched one by
//! one. A history that does not fit the events is not used.

use crate::block::Block;
use crate::gpu::GpuRecording;
use crate::lifetime::Tick;
use crate::private_pools::{PrivatePools, Releases};
use crate::recording::{DeviceHistory, HistoryAction, HistoryEntry, Recording};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use xmem_trace::MemoryTable;
use xmem_types::{Addr, BlockId, Bytes, Diagnostics, Severity};

/// What came of a history.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// The number of entries that disagree with the events, and of those that were compared; none if there is nothing
    /// to compare.
    pub(crate) differs: Option<(u64, u64)>,
    /// Rows of blocks, with the lines of the program that asked for them.
    pub(crate) lines: Vec<(usize, u32)>,
}

/// Adds what the history of a recording says to the blocks of a trace. `rows` are its memory events by tick.
pub(crate) fn apply(
    recording: &Recording,
    memory: &MemoryTable,
    rows: &[u32],
    blocks: &mut [Block],
    gpu: &mut GpuRecording,
    notes: &mut Diagnostics,
) -> Applied {
    let Some(history) = recording.allocator_history.as_ref() else { return Applied::default() };
    let device = history.devices.iter().find(|device| device.index == gpu.index);
    let compared = device.map_or(1, |device| device.entries.len().max(1) as u64);
    // A history that is not whole cannot be compared.
    let (result, differs) = match device {
        _ if !history.complete => (Err("some of its entries are missing".to_owned()), None),
        None => (Err(format!("it has no entry of device {}", gpu.index)), Some((1, 1))),
        Some(device) => match Matching::new(device, memory, rows, blocks, gpu) {
            Some(matching) => (matching.run(), Some((1, compared))),
            None => (Err("it has too many segments of private pools".to_owned()), None),
        },
    };
    let found = match result {
        Ok(found) => found,
        Err(why) => {
            notes.report("allocator-history-unused", Severity::Warning, None, || {
                format!(
                    "the history of the allocator in the recording is not used ({why}): one stream and no \
                     private pool are assumed, so that reserved memory may differ"
                )
            });
            return Applied { differs, lines: Vec::new() };
        }
    };
    notes.report_many("unseen-allocations", Severity::Warning, None, found.unseen, || {
        "memory was allocated on threads that the profiler does not see: it is missing in the replay".into()
    });
    notes.report_many("frees-waited", Severity::Note, None, found.waited, || {
        "blocks were freed while another stream used them: their memory was reused when that stream was \
         done, as recorded"
            .into()
    });
    let mut lines = Vec::new();
    for (row, details) in found.blocks {
        if details.line > 0 {
            lines.push((row, details.line));
        }
        let block = &mut blocks[row];
        block.size = details.size;
        block.stream = details.stream;
        block.pool = details.pool;
        block.completed = details.completed;
    }
    gpu.awaited = found.awaited;
    gpu.cache_releases = found.releases.cache;
    gpu.pool_releases = found.releases.pools;
    gpu.has_history = true;
    Applied { differs: Some((found.unseen + found.other_reserved, compared)), lines }
}

/// What a history says about a block.
#[derive(Clone, Copy, Debug)]
struct Details {
    size: Bytes,
    stream: xmem_types::StreamId,
    pool: Option<xmem_types::PrivatePoolId>,
    completed: Option<Tick>,
    line: u32,
}

/// What a history says about a trace.
#[derive(Default)]
struct Found {
    blocks: Vec<(usize, Details)>,
    releases: Releases,
    /// Frees that waited for other streams.
    waited: u64,
    /// The moments that they waited for.
    awaited: BTreeMap<BlockId, Vec<u64>>,
    /// Allocations that no event shows.
    unseen: u64,
    /// Events whose reserved memory does not follow from the segments.
    other_reserved: u64,
}

struct Matching<'a> {
    entries: &'a [HistoryEntry],
    awaited: &'a BTreeMap<usize, Vec<u64>>,
    pools: PrivatePools,
    memory: &'a MemoryTable,
    rows: &'a [u32],
    /// The rows of blocks by the ticks of their allocations.
    allocated: FxHashMap<Tick, usize>,
    /// The tick of the next event.
    next: usize,
    /// Blocks that are allocated, by address: their places in [`Found::blocks`], none for one without events.
    live: FxHashMap<Addr, Option<usize>>,
    /// Blocks that are freed and wait.
    pending: FxHashMap<Addr, Option<usize>>,
    /// Reserved memory by the segments, from the first event on that has a total.
    reserved: Option<i64>,
    found: Found,
}

impl<'a> Matching<'a> {
    fn new(
        device: &'a DeviceHistory,
        memory: &'a MemoryTable,
        rows: &'a [u32],
        blocks: &[Block],
        gpu: &GpuRecording,
    ) -> Option<Self> {
        let allocated = blocks.iter().enumerate().map(|(row, block)| (block.alloc, row));
        Some(Self {
            entries: &device.entries,
            awaited: &device.awaited,
            pools: PrivatePools::of(device, None)?,
            memory,
            rows,
            allocated: allocated.collect(),
            next: gpu.earlier,
            live: FxHashMap::default(),
            pending: FxHashMap::default(),
            reserved: None,
            found: Found::default(),
        })
    }

    fn run(mut self) -> Result<Found, String> {
        for (position, entry) in self.entries.iter().enumerate() {
            self.entry(position, entry)?;
        }
        // The recorder reads the history before it stops the profiler.
        let rest = &self.rows[self.next.min(self.rows.len())..];
        if let Some(&row) = rest.iter().find(|&&row| self.memory.bytes[row as usize] > 0) {
            return Err(format!(
                "it lacks an allocation at 0x{:x}, which the trace has",
                self.memory.address[row as usize].0
            ));
        }
        Ok(self.found)
    }

    fn entry(&mut self, position: usize, entry: &HistoryEntry) -> Result<(), String> {
        let tick = Tick(self.next as u32);
        let size = i64::try_from(entry.size.get()).unwrap_or(i64::MAX);
        match entry.action {
            HistoryAction::SegmentAlloc => {
                self.reserved = self.reserved.map(|reserved| reserved.saturating_add(size));
            }
            HistoryAction::SegmentFree => {
                self.reserved = self.reserved.map(|reserved| reserved.saturating_sub(size));
            }
            _ => {}
        }
        match entry.action {
            HistoryAction::Alloc => {
                if self.live.contains_key(&entry.address) {
                    return Err(format!("0x{:x} is allocated twice", entry.address.0));
                }
                self.complete(entry.address, tick);
                let place = self.allocation(position, entry)?;
                self.live.insert(entry.address, place);
            }
            HistoryAction::Freed | HistoryAction::FreeRequested => {
                let Some(place) = self.live.remove(&entry.address) else {
                    return Err(format!("0x{:x} is freed and was not allocated", entry.address.0));
                };
                if place.is_some() {
                    self.event(entry.address, |bytes| bytes < 0).ok_or_else(|| {
                        format!("the free of 0x{:x} is not in the trace", entry.address.0)
                    })?;
                }
                if entry.action == HistoryAction::FreeRequested {
                    self.found.waited += 1;
                    if let Some(place) = place {
                        self.found.blocks[place].1.completed = Some(Tick::NEVER);
                        if let Some(moments) = self.awaited.get(&position) {
                            let block = BlockId::new(self.found.blocks[place].0);
                            self.found.awaited.insert(block, moments.clone());
                        }
                    }
                    self.pending.insert(entry.address, place);
                }
            }
            HistoryAction::FreeCompleted => self.complete(entry.address, tick),
            HistoryAction::SegmentFree => {
                self.found.releases.add(self.pools.at(entry.address, position), tick);
            }
            HistoryAction::SegmentAlloc | HistoryAction::OutOfMemory => {}
        }
        Ok(())
    }

    fn complete(&mut self, address: Addr, tick: Tick) {
        if let Some(Some(place)) = self.pending.remove(&address) {
            self.found.blocks[place].1.completed = Some(tick);
        }
    }

    /// The place of a new block, none if the trace does not show it.
    fn allocation(
        &mut self,
        position: usize,
        entry: &HistoryEntry,
    ) -> Result<Option<usize>, String> {
        let Some((tick, bytes)) = self.event(entry.address, |bytes| bytes > 0) else {
            self.found.unseen += 1;
            return Ok(None);
        };
        if entry.size > bytes {
            return Err(format!(
                "{} were requested at 0x{:x}, and the block has {bytes}",
                entry.size, entry.address.0
            ));
        }
        let Some(&row) = self.allocated.get(&tick) else { return Ok(None) };
        let details = Details {
            size: entry.size,
            stream: entry.stream,
            pool: self.pools.at(entry.address, position),
            completed: None,
            line: entry.line,
        };
        self.found.blocks.push((row, details));
        Ok(Some(self.found.blocks.len() - 1))
    }

    /// The next event, if it is at this address and of this sign: its tick and its size.
    fn event(&mut self, address: Addr, sign: impl Fn(i64) -> bool) -> Option<(Tick, Bytes)> {
        let row = *self.rows.get(self.next)? as usize;
        let bytes = self.memory.bytes[row];
        if self.memory.address[row] != address || !sign(bytes) {
            return None;
        }
        let tick = Tick(self.next as u32);
        self.next += 1;
        let recorded = self.memory.total_reserved[row];
        if recorded >= 0 {
            let differs = self.reserved.is_some_and(|reserved| reserved != recorded);
            self.found.other_reserved += u64::from(differs);
            self.reserved = Some(recorded);
        }
        Some((tick, Bytes(bytes.unsigned_abs())))
    }
}
