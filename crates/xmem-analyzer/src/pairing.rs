//! Allocations and frees paired into blocks by address, sign and order.

use crate::gpu::Selection;
use crate::lifetime::{Lifetime, Tick};
use rustc_hash::FxHashMap;
use xmem_trace::MemoryTable;
use xmem_types::{Addr, BlockId, Bytes, Diagnostics, Location, Severity};

/// The memory events of one device, in time order, paired.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// In order of allocation.
    pub(crate) lifetimes: Vec<Lifetime>,
    /// Rows of the memory table in time order: tick `i` is `rows[i]`.
    pub(crate) rows: Vec<u32>,
    pub(crate) counts: PairingCounts,
}

/// Events that do not go with the others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) first: Option<Location>,
}

/// What pairing found odd, for judging the integrity of the recording.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PairingCounts {
    /// True if the format has addresses.
    pub(crate) by_address: bool,
    /// Events of zero bytes.
    pub(crate) zero_bytes: Tally,
    /// Frees of memory whose allocation is not in the trace.
    pub(crate) unmatched: Tally,
    /// Allocations at an address that is in use; the earlier block is assumed to end there.
    pub(crate) live_address: Tally,
    /// Frees of another size than was allocated, which is kept.
    pub(crate) freed_size: Tally,
}

impl Tally {
    fn add(&mut self, row: u32) {
        self.count += 1;
        self.first = self.first.or(Some(Location::MemoryEvent(row)));
    }
}

/// Pairs the events of the selected devices. Ties in time keep the file's order.
///
/// A format without addresses (PyTorch 1.8 and 1.9 write none) is paired by size: a free ends the
/// most recent live allocation of its size, so that what lives long stays long-lived and scratch
/// memory stays short-lived.
pub(crate) fn pair(memory: &MemoryTable, selection: Selection, notes: &mut Diagnostics) -> Pairs {
    let rows = selection.rows(memory);
    let has_addresses = rows.iter().any(|&r| memory.address[r as usize] != Addr(0));
    let allocations = rows.iter().filter(|&&r| memory.bytes[r as usize] > 0).count();
    let mut pairs = Pairs {
        lifetimes: Vec::with_capacity(allocations),
        rows,
        counts: PairingCounts::default(),
    };
    pairs.counts.by_address = has_addresses;
    if has_addresses {
        by_address(memory, &mut pairs);
    } else if !pairs.rows.is_empty() {
        notes.report("no-addresses", Severity::Warning, None, || {
            "the trace has no addresses: frees are matched with the most recent allocation of \
             their size; lifetimes of equal blocks may be swapped"
                .into()
        });
        by_size(memory, &mut pairs);
    }
    let open = pairs.lifetimes.iter().filter(|b| b.free.is_none()).count() as u64;
    notes.report_many("never-freed", Severity::Note, None, open, || {
        "memory is still allocated at the end of the trace".into()
    });
    pairs
}

fn by_address(memory: &MemoryTable, pairs: &mut Pairs) {
    let mut live: FxHashMap<(Addr, i16), BlockId> = FxHashMap::default();
    for (tick, &row) in pairs.rows.iter().enumerate() {
        let r = row as usize;
        let tick = Tick(tick as u32);
        let key = (memory.address[r], memory.device_index[r]);
        match memory.bytes[r] {
            0 => pairs.counts.zero_bytes.add(row),
            1.. => {
                let id = BlockId::new(pairs.lifetimes.len());
                if let Some(earlier) = live.insert(key, id) {
                    pairs.counts.live_address.add(row);
                    let earlier = &mut pairs.lifetimes[earlier.index()];
                    earlier.free = Some(tick);
                    earlier.free_time = Some(memory.time[r]);
                }
                pairs.lifetimes.push(lifetime(memory, r, tick));
            }
            size => {
                let Some(id) = live.remove(&key) else {
                    if !is_of_shared_memory(size, memory.total_allocated[r]) {
                        pairs.counts.unmatched.add(row);
                    }
                    continue;
                };
                let block = &mut pairs.lifetimes[id.index()];
                block.free = Some(tick);
                block.free_time = Some(memory.time[r]);
                if block.size.get() != size.unsigned_abs() {
                    pairs.counts.freed_size.add(row);
                }
            }
        }
    }
}

/// Returns whether an allocation is a mapped file, such as one of weights: it has a total of zero
/// (aten/src/ATen/MapAllocator.cpp, `MapAllocator::MapAllocator`, reports it as reserved).
pub(crate) fn is_of_mapped_file(bytes: i64, total: i64) -> bool {
    bytes > 0 && total == 0
}

/// Returns whether a free may be that of shared memory, or of a mapped file: batches of the workers of a `DataLoader` are freed
/// with a total of zero, and their allocation is not recorded (c10/core/CPUAllocator.cpp counts only what
/// it allocated).
pub(crate) fn is_of_shared_memory(bytes: i64, total: i64) -> bool {
    bytes < 0 && total == 0
}

fn by_size(memory: &MemoryTable, pairs: &mut Pairs) {
    let mut live: FxHashMap<(u64, i16), Vec<BlockId>> = FxHashMap::default();
    for (tick, &row) in pairs.rows.iter().enumerate() {
        let r = row as usize;
        let tick = Tick(tick as u32);
        let bytes = memory.bytes[r];
        let open = live.entry((bytes.unsigned_abs(), memory.device_index[r])).or_default();
        match bytes {
            0 => pairs.counts.zero_bytes.add(row),
            1.. => {
                open.push(BlockId::new(pairs.lifetimes.len()));
                pairs.lifetimes.push(lifetime(memory, r, tick));
            }
            _ => match open.pop() {
                Some(id) => {
                    let block = &mut pairs.lifetimes[id.index()];
                    block.free = Some(tick);
                    block.free_time = Some(memory.time[r]);
                }
                None => pairs.counts.unmatched.add(row),
            },
        }
    }
}

/// A block that is never freed, as far as is known at its allocation.
fn lifetime(memory: &MemoryTable, row: usize, tick: Tick) -> Lifetime {
    Lifetime {
        size: Bytes(memory.bytes[row].unsigned_abs()),
        address: memory.address[row],
        thread: memory.thread[row],
        alloc: tick,
        alloc_time: memory.time[row],
        free: None,
        free_time: None,
    }
}
