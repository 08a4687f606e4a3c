//! Allocations and frees paired into blocks by address, sign and order.

use crate::profile::{Block, Tick};
use rustc_hash::FxHashMap;
use xmem_trace::{DeviceKind, MemoryTable};
use xmem_types::{Addr, BlockId, Bytes, Diagnostics, Location, Severity};

/// The memory events of one device, in time order, paired.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// In order of allocation.
    pub(crate) blocks: Vec<Block>,
    /// Rows of the memory table in time order: tick `i` is `rows[i]`.
    pub(crate) rows: Vec<u32>,
}

/// Pairs the events of `device`. Ties in time keep the file's order.
pub(crate) fn pair(memory: &MemoryTable, device: DeviceKind, notes: &mut Diagnostics) -> Pairs {
    let mut rows: Vec<u32> = (0..memory.len() as u32)
        .filter(|&r| memory.device[r as usize] == device && !memory.out_of_memory[r as usize])
        .collect();
    rows.sort_by_key(|&r| (memory.time[r as usize], r));
    check_totals(memory, &rows, notes);
    let mut blocks: Vec<Block> = Vec::with_capacity(rows.len() / 2);
    let mut live: FxHashMap<(Addr, i16), BlockId> = FxHashMap::default();
    for (tick, &row) in rows.iter().enumerate() {
        let r = row as usize;
        let tick = Tick(tick as u32);
        let at = Some(Location::MemoryEvent(row));
        let key = (memory.address[r], memory.device_index[r]);
        match memory.bytes[r] {
            0 => notes.report("zero-byte-event", Severity::Note, at, || {
                "a memory event of zero bytes was skipped".into()
            }),
            size @ 1.. => {
                let id = BlockId::new(blocks.len());
                if let Some(earlier) = live.insert(key, id) {
                    notes.report("allocation-at-live-address", Severity::Warning, at, || {
                        "an address was handed out again without a recorded free; the earlier \
                         block is taken to end there"
                            .into()
                    });
                    let earlier = &mut blocks[earlier.index()];
                    earlier.free = Some(tick);
                    earlier.free_time = Some(memory.time[r]);
                }
                blocks.push(Block::new(
                    Bytes(size.unsigned_abs()),
                    key.0,
                    memory.thread[r],
                    tick,
                    memory.time[r],
                ));
            }
            size => {
                let Some(id) = live.remove(&key) else {
                    notes.report("free-without-allocation", Severity::Note, at, || {
                        "memory was freed that the trace never saw allocated (it was made before \
                         the recording began)"
                            .into()
                    });
                    continue;
                };
                let block = &mut blocks[id.index()];
                block.free = Some(tick);
                block.free_time = Some(memory.time[r]);
                if block.size.get() != size.unsigned_abs() {
                    notes.report("free-size-differs", Severity::Warning, at, || {
                        format!(
                            "a block of {} was freed as {}; the allocation's size is kept",
                            block.size,
                            Bytes(size.unsigned_abs())
                        )
                    });
                }
            }
        }
    }
    Pairs { blocks, rows }
}

fn check_totals(memory: &MemoryTable, rows: &[u32], notes: &mut Diagnostics) {
    let mut running: Option<i64> = None;
    let mut wrong = 0;
    let mut first = None;
    for &row in rows {
        let r = row as usize;
        let said = memory.total_allocated[r];
        if said < 0 {
            continue;
        }
        if running.is_some_and(|total| total + memory.bytes[r] != said) {
            wrong += 1;
            first = first.or(Some(Location::MemoryEvent(row)));
        }
        running = Some(said);
    }
    notes.report_many("running-total-differs", Severity::Warning, first, wrong, || {
        "the recorded `Total Allocated` does not follow from the events: some memory events are \
         missing from the trace"
            .into()
    });
}
