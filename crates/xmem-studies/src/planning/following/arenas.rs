//! The arenas of a plan that is followed: what is live in them, and the pages that have memory. `arena.c` and `live.c` of the
//! crate `xmem-planned` do the same.

use super::super::job_plan::Arena;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use xmem_types::{BlockId, Bytes};

/// The unit in which an arena gets memory.
const PAGE: u64 = 2 << 20;

/// Both arenas.
#[derive(Default)]
pub(super) struct Arenas {
    iteration: Live,
    lasting: Live,
    /// The place of each block.
    blocks: BTreeMap<BlockId, (Arena, Bytes)>,
}

/// What is live in an arena.
#[derive(Default)]
struct Live {
    /// The end of each block by its offset.
    blocks: BTreeMap<Bytes, Bytes>,
    /// What is free below the last block: bytes, and offset.
    gaps: BTreeSet<(Bytes, Bytes)>,
    /// The pages that have memory.
    pages: BTreeSet<u64>,
}

impl Arenas {
    /// Places a block where nothing is live. Returns false if something is.
    pub(super) fn place(
        &mut self,
        arena: Arena,
        offset: Bytes,
        size: Bytes,
        block: BlockId,
    ) -> bool {
        let live = self.live(arena);
        let is_free = live.is_free(offset, size);
        if is_free {
            live.add(offset, size);
            self.blocks.insert(block, (arena, offset));
        }
        is_free
    }

    /// Places a block that has no address of the plan among those of the iterations: in the smallest gap that is large enough,
    /// and of such gaps the lowest, else behind the last block.
    pub(super) fn fit(&mut self, size: Bytes, block: BlockId) {
        let offset = self.iteration.gap(size);
        self.iteration.add(offset, size);
        self.blocks.insert(block, (Arena::Iteration, offset));
    }

    /// Returns false if the block is not here.
    pub(super) fn free(&mut self, block: BlockId) -> bool {
        let Some((arena, offset)) = self.blocks.remove(&block) else { return false };
        self.live(arena).remove(offset);
        true
    }

    /// Gives back the pages without a live block.
    pub(super) fn trim(&mut self) {
        for live in [&mut self.iteration, &mut self.lasting] {
            let pages = live.blocks.iter().flat_map(|(&offset, &end)| pages(offset, end));
            let used: BTreeSet<u64> = pages.collect();
            live.pages.retain(|page| used.contains(page));
        }
    }

    pub(super) fn mapped(&self) -> Bytes {
        Bytes((self.iteration.pages.len() + self.lasting.pages.len()) as u64 * PAGE)
    }

    const fn live(&mut self, arena: Arena) -> &mut Live {
        match arena {
            Arena::Iteration => &mut self.iteration,
            Arena::Lasting => &mut self.lasting,
        }
    }
}

impl Live {
    /// The end of the last block that begins before `offset`, and the begin of the first one that does not.
    fn around(&self, offset: Bytes) -> (Bytes, Option<Bytes>) {
        let before = self.blocks.range(..offset).next_back().map(|(_, &end)| end);
        let behind = self.blocks.range(offset..).next().map(|(&start, _)| start);
        (before.unwrap_or_default(), behind)
    }

    fn is_free(&self, offset: Bytes, size: Bytes) -> bool {
        let (before, behind) = self.around(offset);
        before <= offset && behind.is_none_or(|behind| behind >= offset + size)
    }

    fn add(&mut self, offset: Bytes, size: Bytes) {
        let (end, (before, behind)) = (offset + size, self.around(offset));
        if let Some(behind) = behind {
            self.gaps.remove(&(behind - before, before));
            self.add_gap(end, behind);
        }
        self.add_gap(before, offset);
        self.blocks.insert(offset, end);
        self.pages.extend(pages(offset, end));
    }

    fn remove(&mut self, offset: Bytes) {
        let Some(end) = self.blocks.remove(&offset) else { return };
        let (before, behind) = self.around(offset);
        self.gaps.remove(&(offset - before, before));
        if let Some(behind) = behind {
            self.gaps.remove(&(behind - end, end));
            self.add_gap(before, behind);
        }
    }

    fn add_gap(&mut self, start: Bytes, end: Bytes) {
        if start < end {
            self.gaps.insert((end - start, start));
        }
    }

    fn gap(&self, size: Bytes) -> Bytes {
        let gap = self.gaps.range((size, Bytes::ZERO)..).next().map(|&(_, start)| start);
        let end = || self.blocks.last_key_value().map(|(_, &end)| end);
        gap.or_else(end).unwrap_or_default()
    }
}

fn pages(offset: Bytes, end: Bytes) -> RangeInclusive<u64> {
    offset.get() / PAGE..=(end.get() - 1) / PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes(PAGE);

    #[test]
    fn pages_without_a_live_block_are_given_back() {
        let mut arenas = Arenas::default();
        for (block, (arena, pages)) in
            [(Arena::Iteration, 0), (Arena::Iteration, 1), (Arena::Lasting, 0)]
                .into_iter()
                .enumerate()
        {
            assert!(arenas.place(arena, Bytes(pages * PAGE), SIZE, BlockId::new(block)));
        }
        arenas.free(BlockId(1));
        assert_eq!(arenas.mapped(), Bytes(3 * PAGE));
        arenas.trim();
        assert_eq!(arenas.mapped(), Bytes(2 * PAGE));
        assert!(arenas.place(Arena::Iteration, Bytes(PAGE), SIZE, BlockId(3)));
        assert_eq!(arenas.mapped(), Bytes(3 * PAGE));
    }

    #[test]
    fn a_block_without_an_address_gets_the_lowest_of_the_smallest_gaps_that_are_large_enough() {
        let mut arenas = Arenas::default();
        for (block, pages) in [0, 3, 5, 7].into_iter().enumerate() {
            assert!(arenas.place(Arena::Iteration, Bytes(pages * PAGE), SIZE, BlockId::new(block)));
        }
        for (block, pages) in [(4, 4), (5, 6), (6, 1), (7, 2), (8, 8)] {
            arenas.fit(SIZE, BlockId(block));
            assert_eq!(arenas.blocks[&BlockId(block)].1, Bytes(pages * PAGE), "{block}");
        }
        // What is freed is one gap with what is free beside it.
        for block in [2, 4, 5] {
            arenas.free(BlockId(block));
        }
        arenas.fit(Bytes(3 * PAGE), BlockId(9));
        assert_eq!(arenas.blocks[&BlockId(9)].1, Bytes(4 * PAGE));
    }
}
