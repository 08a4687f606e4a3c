//! Frees that the profiler does not see, from the allocator's history.
//!
//! The allocator reports to the profiler of the thread on which it is called. A thread of autograd has one only while
//! it evaluates a node (torch/csrc/autograd/engine.cpp, `Engine::thread_main`, `ThreadLocalStateGuard`): a node that
//! dies with its task frees what it saved outside of that. It does in a backward pass that keeps the graph, as
//! schedules of pipelines with zero bubbles make it.

use crate::gpu::Selection;
use crate::recording::{DeviceHistory, HistoryAction, Recording};
use rustc_hash::FxHashMap;
use xmem_trace::{DeviceKind, MemoryTable};
use xmem_types::{Addr, Diagnostics, Severity};

/// A free that no event shows.
struct Unseen {
    /// The row of the event before it.
    after: u32,
    address: Addr,
    /// The size of the block.
    bytes: i64,
}

/// Adds an event for each free that only the history has. A history that does not fit the events otherwise adds none.
pub(crate) fn add(recording: &Recording, memory: &mut MemoryTable, notes: &mut Diagnostics) {
    let Some(history) = &recording.allocator_history else { return };
    if !history.complete {
        return;
    }
    let mut added = 0;
    for device in &history.devices {
        let rows = Selection::device(DeviceKind::Cuda, device.index).rows(memory);
        let unseen = find(device, memory, &rows).unwrap_or_default();
        added += unseen.len() as u64;
        insert(memory, unseen);
    }
    notes.report_many("unseen-frees", Severity::Note, None, added, || {
        "memory was freed on threads that the profiler does not see: the history of the allocator has it".into()
    });
}

/// The frees of a history that are not among the events, in order; none if other entries do not fit.
fn find(device: &DeviceHistory, memory: &MemoryTable, rows: &[u32]) -> Option<Vec<Unseen>> {
    let mut events = rows.iter().map(|&row| row as usize).peekable();
    let mut before = None;
    // Sizes of the blocks that the events show.
    let mut live: FxHashMap<Addr, Option<i64>> = FxHashMap::default();
    let mut unseen = Vec::new();
    for entry in &device.entries {
        let is_here = |row: &usize| memory.address[*row] == entry.address;
        match entry.action {
            HistoryAction::Alloc => {
                let event = events.next_if(|row| is_here(row) && memory.bytes[*row] > 0);
                live.insert(entry.address, event.map(|row| memory.bytes[row]));
                before = event.or(before);
            }
            HistoryAction::Freed | HistoryAction::FreeRequested => {
                let Some(bytes) = live.remove(&entry.address)? else { continue };
                match events.next_if(|row| is_here(row) && memory.bytes[*row] < 0) {
                    Some(row) => before = Some(row),
                    None => {
                        unseen.push(Unseen {
                            after: before? as u32,
                            address: entry.address,
                            bytes,
                        });
                    }
                }
            }
            _ => {}
        }
    }
    // The history ends before the events do, which have frees only then.
    events.all(|row| memory.bytes[row] <= 0).then_some(unseen)
}

/// Inserts events behind those before them, at their time: ties keep the order of the rows.
fn insert(memory: &mut MemoryTable, unseen: Vec<Unseen>) {
    if unseen.is_empty() {
        return;
    }
    let mut behind: FxHashMap<u32, Vec<Unseen>> = FxHashMap::default();
    for free in unseen {
        behind.entry(free.after).or_default().push(free);
    }
    let old = std::mem::take(memory);
    for row in 0..old.len() {
        copy(&old, row, memory);
        for free in behind.remove(&(row as u32)).unwrap_or_default() {
            let before = memory.len() - 1;
            let total = memory.total_allocated[before];
            copy(&old, row, memory);
            let this = memory.len() - 1;
            memory.address[this] = free.address;
            memory.bytes[this] = -free.bytes;
            memory.total_allocated[this] = if total < 0 { total } else { total - free.bytes };
        }
    }
}

fn copy(from: &MemoryTable, row: usize, to: &mut MemoryTable) {
    to.time.push(from.time[row]);
    to.address.push(from.address[row]);
    to.bytes.push(from.bytes[row]);
    to.total_allocated.push(from.total_allocated[row]);
    to.total_reserved.push(from.total_reserved[row]);
    to.device.push(from.device[row]);
    to.device_index.push(from.device_index[row]);
    to.thread.push(from.thread[row]);
    to.out_of_memory.push(from.out_of_memory[row]);
}
