//! The check of every plan, written without regard to any planner.

use crate::list::BlockList;
use crate::plan::Plan;
use std::collections::BTreeMap;
use thiserror::Error;

/// Two blocks of a plan that share memory while both are live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "blocks {first} and {second} overlap at tick {tick}: this is a bug of the planner; please report it"
)]
pub struct Violation {
    /// The block with the lower offset, or the lower id.
    pub first: usize,
    /// The other one.
    pub second: usize,
    /// A tick at which both are live.
    pub tick: u32,
}

/// Looks for blocks that overlap in memory while both are live: a sweep over time with the live blocks by offset,
/// O(n log n) for n blocks.
///
/// # Errors
/// If there are such blocks: the first pair that the sweep meets.
pub fn check(list: &BlockList, plan: &Plan) -> Result<(), Violation> {
    let blocks = list.blocks();
    let ids = || (0..blocks.len()).filter(|&id| blocks[id].size.get() > 0);
    let mut starts: Vec<usize> = ids().collect();
    let mut ends = starts.clone();
    starts.sort_by_key(|&id| blocks[id].start);
    ends.sort_by_key(|&id| blocks[id].end);
    let mut ends = ends.into_iter().peekable();
    let mut live: BTreeMap<u64, usize> = BTreeMap::new();
    let range = |id: usize| {
        let offset = plan.offsets()[id];
        (offset.get(), (offset + blocks[id].size).get())
    };
    for id in starts {
        let tick = blocks[id].start;
        while let Some(ended) = ends.next_if(|&ended| blocks[ended].end <= tick) {
            live.remove(&range(ended).0);
        }
        let (low, high) = range(id);
        let below = live.range(..=low).next_back().filter(|&(_, &other)| range(other).1 > low);
        let above = || live.range(low..high).next();
        if let Some((_, &other)) = below.or_else(above) {
            let (first, second) = if range(other) <= range(id) { (other, id) } else { (id, other) };
            return Err(Violation { first, second, tick });
        }
        live.insert(low, id);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::PlannedBlock;
    use proptest::prelude::*;
    use xmem_types::Bytes;

    fn blocks() -> impl Strategy<Value = (Vec<PlannedBlock>, Vec<Bytes>)> {
        let block =
            (0u64..6, 0u32..8, 1u32..5, 0u64..12).prop_map(|(size, start, length, offset)| {
                let block =
                    PlannedBlock { size: Bytes(size), start, end: start + length, operator: None };
                (block, Bytes(offset))
            });
        prop::collection::vec(block, 0..8).prop_map(|pairs| pairs.into_iter().unzip())
    }

    proptest! {
        #[test]
        fn the_sweep_agrees_with_a_look_at_every_pair((blocks, offsets) in blocks()) {
            let list = BlockList::new(blocks).expect("a list");
            let plan = Plan::new(&list, offsets);
            let blocks = list.blocks();
            let pair = |a: usize, b: usize| {
                let (low, other) = (plan.offsets()[a], plan.offsets()[b]);
                blocks[a].size.get() > 0
                    && blocks[b].size.get() > 0
                    && blocks[a].overlaps_in_time(&blocks[b])
                    && low < other + blocks[b].size
                    && other < low + blocks[a].size
            };
            let any = (0..blocks.len()).any(|a| (0..a).any(|b| pair(a, b)));
            match check(&list, &plan) {
                Ok(()) => prop_assert!(!any),
                Err(Violation { first, second, tick }) => {
                    prop_assert!(first != second && pair(first, second));
                    for id in [first, second] {
                        prop_assert!(blocks[id].start <= tick && tick < blocks[id].end);
                    }
                }
            }
        }
    }
}
