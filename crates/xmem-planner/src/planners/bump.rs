//! `bump`: the next block begins where the last one ended, and memory is used again only when nothing is
//! live (MemoMalloc, `bump_allocation`): the baseline without a plan.
//!
//! The thesis does not say that the next block begins at zero when nothing is live; its authors' code does it. Without,
//! the peak would be the size of all blocks together, [`BlockList::total`](crate::BlockList::total).

use super::Placed;
use crate::instance::Instance;

pub(crate) fn place(instance: &Instance) -> Placed {
    let mut order: Vec<usize> = (0..instance.blocks.len()).collect();
    order.sort_by_key(|&block| instance.blocks[block].start);
    let (mut offsets, mut next, mut end) = (vec![0; order.len()], 0, 0);
    for block in order {
        let item = &instance.blocks[block];
        if item.start >= end {
            next = 0;
        }
        offsets[block] = next;
        next += item.size;
        end = end.max(item.end);
    }
    Placed::heuristic(offsets)
}
