//! The operators in which each block is allocated and freed.

use crate::lifetime::{Lifetime, Origin, Tick};
use crate::optree::{OpTree, Sweep};
use xmem_trace::{MemoryTable, OpTable};
use xmem_types::OpId;

/// The origin of every block: one sweep per thread over operators and memory events.
pub(crate) fn origins(
    lifetimes: &[Lifetime],
    rows: &[u32],
    memory: &MemoryTable,
    ops: &OpTable,
    tree: &OpTree,
) -> Vec<Origin> {
    let mut by_thread: Vec<Vec<u32>> = Vec::new();
    for (tick, &row) in rows.iter().enumerate() {
        let thread = memory.thread[row as usize].index();
        if by_thread.len() <= thread {
            by_thread.resize_with(thread + 1, Vec::new);
        }
        by_thread[thread].push(tick as u32);
    }
    let mut innermost: Vec<Option<OpId>> = vec![None; rows.len()];
    for ticks in by_thread.iter().filter(|ticks| !ticks.is_empty()) {
        let thread = memory.thread[rows[ticks[0] as usize] as usize];
        let mut sweep = Sweep::new(ops, tree, thread);
        for &tick in ticks {
            innermost[tick as usize] = sweep.innermost(memory.time[rows[tick as usize] as usize]);
        }
    }
    let at = |tick: Tick| innermost[tick.0 as usize];
    let origin = |l: &Lifetime| Origin { op: at(l.alloc), freed_in: l.free.and_then(at) };
    lifetimes.iter().map(origin).collect()
}
