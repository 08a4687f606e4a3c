//! Blocks that are placed: finds room for the next one between those that it conflicts with.

use super::conflicts::Conflicts;
use crate::budget::Budget;
use crate::instance::{Instance, Item};

/// The most blocks of a chunk: the bits of the mask of those that conflict.
const CHUNK: usize = 64;
/// A conflict that is looked up costs as much as this number of placed blocks that are looked at.
const LOOKUP: usize = 16;
/// The blocks that are placed between two looks at the clock.
const TURN: usize = 64;

/// Which of the gaps that are large enough a block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The smallest one, and of these the lowest.
    Best,
    /// The lowest one.
    First,
}

/// The blocks that are placed: in chunks by offset, for blocks that conflict with many others, and by time, for
/// those that conflict with few.
pub(super) struct Shelf<'a> {
    instance: &'a Instance,
    fit: Fit,
    offsets: Vec<u64>,
    placed: usize,
    chunks: Vec<Chunk>,
    conflicts: Conflicts<'a>,
    /// The memory of the blocks that were looked up.
    found: Vec<(u64, u64)>,
}

/// Some blocks in the order of their offsets: one array for each property, so that conflicts are found several
/// at a time.
#[derive(Default)]
struct Chunk {
    starts: Vec<u32>,
    ends: Vec<u32>,
    offsets: Vec<u64>,
    tops: Vec<u64>,
}

/// The choice among the gaps between blocks that are shown in the order of their offsets.
struct Choice {
    fit: Fit,
    size: u64,
    /// The end of the highest block so far.
    top: u64,
    /// The best gap so far: its size and its bottom.
    best: Option<(u64, u64)>,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(instance: &'a Instance, fit: Fit) -> Self {
        Self {
            instance,
            fit,
            offsets: vec![0; instance.blocks.len()],
            placed: 0,
            chunks: vec![Chunk::default()],
            conflicts: Conflicts::new(instance),
            found: Vec::new(),
        }
    }

    /// Places blocks in this order, each at the bottom of a gap or at the end of the highest block that it
    /// conflicts with, and returns the offsets of all; `None` if the time is over before.
    pub(super) fn place(mut self, order: &[u32], budget: &Budget) -> Option<Vec<u64>> {
        for &block in order {
            if (self.placed + 1).is_multiple_of(TURN) && budget.time_left().is_zero() {
                return None;
            }
            let item = &self.instance.blocks[block as usize];
            let offset = if self.conflicts.most(item) * LOOKUP < self.placed {
                self.look_up(item)
            } else {
                self.look_at_all(item)
            };
            self.offsets[block as usize] = offset;
            self.placed += 1;
            self.conflicts.insert(block);
            self.insert(item, offset);
        }
        Some(self.offsets)
    }

    fn look_up(&mut self, item: &Item) -> u64 {
        let (offsets, blocks) = (&self.offsets, &self.instance.blocks);
        self.found.clear();
        self.conflicts.each(item, |block| {
            let offset = offsets[block as usize];
            self.found.push((offset, offset + blocks[block as usize].size));
        });
        self.found.sort_unstable();
        let mut choice = Choice::new(item.size, self.fit);
        for &(offset, top) in &self.found {
            if choice.meet(offset, top) {
                break;
            }
        }
        choice.offset()
    }

    fn look_at_all(&self, item: &Item) -> u64 {
        let mut choice = Choice::new(item.size, self.fit);
        for chunk in &self.chunks {
            let mut conflicts = chunk.conflicts(item);
            while conflicts != 0 {
                let index = conflicts.trailing_zeros() as usize;
                conflicts &= conflicts - 1;
                if choice.meet(chunk.offsets[index], chunk.tops[index]) {
                    return choice.offset();
                }
            }
        }
        choice.offset()
    }

    fn insert(&mut self, item: &Item, offset: u64) {
        let before = |chunk: &Chunk| chunk.offsets.first().is_some_and(|&first| first < offset);
        let at = self.chunks.partition_point(before).saturating_sub(1);
        let chunk = &mut self.chunks[at];
        let index = chunk.offsets.partition_point(|&other| other < offset);
        chunk.starts.insert(index, item.start);
        chunk.ends.insert(index, item.end);
        chunk.offsets.insert(index, offset);
        chunk.tops.insert(index, offset + item.size);
        if chunk.starts.len() == CHUNK {
            let upper = chunk.split();
            self.chunks.insert(at + 1, upper);
        }
    }
}

impl Choice {
    const fn new(size: u64, fit: Fit) -> Self {
        Self { fit, size, top: 0, best: None }
    }

    /// Looks at the gap below the next block; true if no other gap matters.
    fn meet(&mut self, offset: u64, top: u64) -> bool {
        let gap = offset.saturating_sub(self.top);
        if gap >= self.size && self.best.is_none_or(|(least, _)| gap < least) {
            self.best = Some((gap, self.top));
            if self.fit == Fit::First {
                return true;
            }
        }
        self.top = self.top.max(top);
        false
    }

    /// The bottom of the chosen gap, or the end of the highest block.
    fn offset(&self) -> u64 {
        self.best.map_or(self.top, |(_, bottom)| bottom)
    }
}

impl Chunk {
    /// One bit for each block: whether it conflicts.
    fn conflicts(&self, item: &Item) -> u64 {
        let lives = self.starts.iter().zip(&self.ends);
        let mask = lives.enumerate().map(|(index, (&start, &end))| {
            u64::from((start < item.end) & (item.start < end)) << index
        });
        mask.fold(0, |mask, bit| mask | bit)
    }

    fn split(&mut self) -> Self {
        let half = self.starts.len() / 2;
        Self {
            starts: self.starts.split_off(half),
            ends: self.ends.split_off(half),
            offsets: self.offsets.split_off(half),
            tops: self.tops.split_off(half),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Limits;
    use crate::list::{BlockList, PlannedBlock};
    use proptest::prelude::*;
    use xmem_types::Bytes;

    /// The rule with nothing but a sorted list.
    fn slowly(instance: &Instance, fit: Fit) -> Vec<u64> {
        let mut offsets: Vec<u64> = Vec::new();
        for item in &instance.blocks {
            let placed = instance.blocks.iter().zip(&offsets);
            let conflicts = placed.filter(|(other, _)| other.conflicts(item));
            let mut memory: Vec<(u64, u64)> =
                conflicts.map(|(other, &offset)| (offset, offset + other.size)).collect();
            memory.sort_unstable();
            let mut gaps = Vec::new();
            let mut top = 0;
            for (offset, end) in memory {
                if offset >= top + item.size {
                    gaps.push((offset - top, top));
                }
                top = top.max(end);
            }
            let gap = match fit {
                Fit::Best => gaps.iter().min(),
                Fit::First => gaps.first(),
            };
            offsets.push(gap.map_or(top, |&(_, bottom)| bottom));
        }
        offsets
    }

    proptest! {
        #[test]
        fn both_ways_to_look_give_the_place_of_the_rule(
            blocks in prop::collection::vec((1u64..50, 0u32..400, 1u32..30, prop::bool::weighted(0.05)), 0..250)
        ) {
            // Most blocks are short; some live from then on.
            let block = |(size, start, length, stays)| {
                let end = if stays { 500 } else { start + length };
                PlannedBlock { size: Bytes(size), start, end, operator: None }
            };
            let list = BlockList::new(blocks.into_iter().map(block).collect()).expect("a list");
            let order: Vec<u32> = (0..list.len() as u32).collect();
            for fit in [Fit::Best, Fit::First] {
                let budget = Budget::new(&Limits::default());
                let offsets = Shelf::new(list.instance(), fit).place(&order, &budget);
                prop_assert_eq!(offsets, Some(slowly(list.instance(), fit)));
            }
        }
    }
}
