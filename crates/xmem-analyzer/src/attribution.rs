//! Which operator each block comes from and is freed in.

use crate::block::Block;
use crate::optree::{OpTree, Sweep};
use xmem_trace::{MemoryTable, OpTable};
use xmem_types::OpId;

/// Sets `op` and `freed_in` of every block: one sweep per thread over operators and memory events.
pub(crate) fn attribute_ops(
    blocks: &mut [Block],
    rows: &[u32],
    memory: &MemoryTable,
    ops: &OpTable,
    tree: &OpTree,
) {
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
    for block in blocks {
        block.op = innermost[block.alloc.0 as usize];
        block.freed_in = block.free.and_then(|t| innermost[t.0 as usize]);
    }
}
