//! `gergov`: Gergov's algorithm, as MemoMalloc has it, after J. Gergov, "Algorithms for compile-time memory
//! optimization" (SODA 1999). The paper guarantees three times the lower bound; a bound on other planners, and
//! no good plan itself.
//!
//! First, blocks are placed in free areas, each an interval of time above some height, so that some may overlap. Then a
//! coloring of those that overlap lifts all blocks of a color by the height of the whole.
//!
//! In the paper, the areas beside a placed block reach over its time, too. What meets this part of them meets the area on
//! top of the block, which is taken later, so that nothing is placed there: the plans are the same.

use super::Placed;
use crate::budget::Budget;
use crate::instance::Instance;
use std::collections::BTreeSet;

/// The blocks of the longest list: time grows with their square at least.
pub(crate) const MAX_BLOCKS: usize = 20_000;

/// The blocks between two looks at the clock.
const TURN: usize = 64;

/// The memory from `height` on, free in the sections `start..end`. The lowest comes first, and of these the oldest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Area {
    height: u64,
    /// The number of areas made before.
    age: usize,
    start: u32,
    end: u32,
}

/// Where the areas before and after a placed block end and begin: at the block, or as in the paper.
#[derive(Clone, Copy)]
enum Beside {
    Block,
    #[cfg(test)]
    Paper,
}

/// Offsets; `None` if the time is over before.
pub(crate) fn place(instance: &Instance, budget: &Budget) -> Option<Placed> {
    lifted(instance, overlapping(instance, Beside::Block, budget)?, budget)
}

/// The blocks of a color lifted above those of the colors before.
fn lifted(
    instance: &Instance,
    (mut offsets, placed): (Vec<u64>, Vec<usize>),
    budget: &Budget,
) -> Option<Placed> {
    let top = placed.iter().map(|&block| offsets[block] + instance.blocks[block].size).max();
    for (block, color) in colors(instance, &offsets, &placed, budget)? {
        offsets[block] += color * top.unwrap_or(0);
    }
    Some(Placed::heuristic(offsets))
}

/// Offsets at which blocks may overlap, and the blocks in the order in which they were placed.
fn overlapping(
    instance: &Instance,
    beside: Beside,
    budget: &Budget,
) -> Option<(Vec<u64>, Vec<usize>)> {
    let blocks = &instance.blocks;
    let mut left: Vec<usize> = (0..blocks.len()).collect();
    left.sort_by_key(|&block| blocks[block].start);
    let (mut offsets, mut placed) = (vec![0; blocks.len()], Vec::with_capacity(blocks.len()));
    let (mut areas, mut age) = (BTreeSet::new(), 0);
    // By section: the areas there.
    let mut covered = vec![0u32; instance.loads.len()];
    while !left.is_empty() {
        if (placed.len() + 1).is_multiple_of(TURN) && budget.time_left().is_zero() {
            return None;
        }
        let Some(area) = areas.pop_first() else {
            let all = Area { height: 0, age, start: 0, end: instance.sections() };
            age += 1;
            areas.insert(all);
            covered.fill(1);
            continue;
        };
        let sections = |area: Area| area.start as usize..area.end as usize;
        covered[sections(area)].iter_mut().for_each(|areas| *areas -= 1);
        let fits = |&block: &usize| {
            let item = &blocks[block];
            item.end > area.start
                && covered[item.start as usize..item.end as usize].iter().all(|&areas| areas == 0)
        };
        // Those that start later do not meet the area.
        let met = left.partition_point(|&block| blocks[block].start < area.end);
        let Some(index) = left[..met].iter().position(fits) else { continue };
        let block = left.remove(index);
        let item = &blocks[block];
        offsets[block] = area.height;
        placed.push(block);
        let (start, end) = (item.start.max(area.start), item.end.min(area.end));
        let none = Area { end: area.start, ..area };
        let before = if area.start < item.start { area } else { none };
        let after = if item.end < area.end { area } else { none };
        let (before, after) = match beside {
            Beside::Block => (Area { end: start, ..before }, Area { start: end, ..after }),
            #[cfg(test)]
            Beside::Paper => (
                Area { end: end.min(before.end), ..before },
                Area { start: start.max(after.start), ..after },
            ),
        };
        for rest in [Area { height: area.height + item.size, start, end, ..area }, before, after] {
            if rest.start < rest.end {
                areas.insert(Area { age, ..rest });
                age += 1;
                covered[sections(rest)].iter_mut().for_each(|areas| *areas += 1);
            }
        }
    }
    Some((offsets, placed))
}

/// The blocks with the least color that no block before them has with which they overlap.
fn colors(
    instance: &Instance,
    offsets: &[u64],
    placed: &[usize],
    budget: &Budget,
) -> Option<Vec<(usize, u64)>> {
    let mut colors: Vec<(usize, u64)> = Vec::with_capacity(placed.len());
    for &block in placed {
        if (colors.len() + 1).is_multiple_of(TURN) && budget.time_left().is_zero() {
            return None;
        }
        let (item, offset) = (&instance.blocks[block], offsets[block]);
        let overlaps = |&&(other, _): &&(usize, u64)| {
            let (before, height) = (&instance.blocks[other], offsets[other]);
            item.conflicts(before) && offset < height + before.size && height < offset + item.size
        };
        let mut taken: Vec<u64> = colors.iter().filter(overlaps).map(|&(_, color)| color).collect();
        taken.sort_unstable();
        taken.dedup();
        let free = taken.iter().zip(0..).position(|(&color, count)| color != count);
        colors.push((block, free.unwrap_or(taken.len()) as u64));
    }
    Some(colors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Limits;
    use crate::list::{BlockList, PlannedBlock};
    use proptest::prelude::*;
    use xmem_types::Bytes;

    fn blocks() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
        prop_oneof![
            prop::collection::vec((1u64..4, 0u32..10, 1u32..10), 1..20),
            prop::collection::vec((1u64..100, 0u32..60, 1u32..40), 1..120),
        ]
    }

    proptest! {
        /// No more than three colors, none higher than the bound: what the paper proves.
        #[test]
        fn the_plans_are_those_of_the_paper_and_within_three_times_the_bound(blocks in blocks()) {
            let block = |(size, start, length)| {
                PlannedBlock { size: Bytes(size), start, end: start + length, operator: None }
            };
            let list = BlockList::new(blocks.into_iter().map(block).collect()).expect("a list");
            let (instance, budget) = (list.instance(), Budget::new(&Limits::default()));
            let [here, paper] = [Beside::Block, Beside::Paper].map(|beside| {
                let below = overlapping(instance, beside, &budget).expect("time");
                let tops = instance.blocks.iter().zip(&below.0);
                let top = tops.map(|(block, offset)| offset + block.size).max();
                assert!(top <= Some(instance.lower_bound()));
                lifted(instance, below, &budget).expect("time").offsets
            });
            prop_assert!(instance.peak(&here) <= 3 * instance.lower_bound());
            prop_assert_eq!(here, paper);
        }
    }
}
