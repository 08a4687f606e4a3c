//! Segments and blocks that can be taken apart again.

use super::Contradiction;
use crate::recording::{Recording, kind_of};
use std::collections::BTreeMap;
use xmem_simulator::{AllocatorConfig, PoolKind};
use xmem_snapshot::{BlockState, PoolId};
use xmem_types::{Addr, Bytes, StreamId};

/// The use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Free,
    Held,
    Pending,
}

/// The certainty of a block's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Known,
    /// At least this; what follows may belong to it.
    AtLeast,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) size: Bytes,
    pub(super) used: Use,
    pub(super) requested: Bytes,
    certain: Size,
}

impl Block {
    fn free(size: Bytes) -> Self {
        Self { size, used: Use::Free, requested: Bytes::ZERO, certain: Size::Known }
    }
}

/// A segment, or a contiguous mapped range of an expandable one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) size: Bytes,
    pub(super) stream: StreamId,
    pub(super) kind: PoolKind,
    pub(super) pool: PoolId,
    pub(super) expandable: bool,
}

impl Range {
    /// A segment of the default pool, whose size is known from elsewhere. (That of a private pool
    /// which was released cannot be distinguished.)
    pub(super) fn segment(stream: StreamId, kind: PoolKind) -> Self {
        Self { size: Bytes::ZERO, stream, kind, pool: PoolId::default(), expandable: false }
    }

    /// Pages of an expandable segment.
    pub(super) fn pages(stream: StreamId, kind: PoolKind) -> Self {
        Self { expandable: true, ..Self::segment(stream, kind) }
    }

    /// Returns whether two ranges of expandable segments are parts of one: there is one for each
    /// pool and stream, unless its address space does not suffice.
    pub(super) fn same_pool(&self, other: &Self) -> bool {
        let identity = |range: &Self| (range.expandable, range.stream, range.kind, range.pool);
        identity(self) == identity(other)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    ranges: BTreeMap<Addr, Range>,
    blocks: BTreeMap<Addr, Block>,
}

fn end(addr: Addr, size: Bytes) -> Addr {
    Addr(addr.0.saturating_add(size.get()))
}

fn distance(from: Addr, to: Addr) -> Bytes {
    Bytes(to.0.saturating_sub(from.0))
}

impl Layout {
    /// The segments of the snapshot.
    pub(super) fn of(recording: &Recording<'_>) -> Self {
        let mut layout = Self::default();
        for segment in recording.segments() {
            let range = Range {
                size: segment.total,
                stream: segment.stream,
                kind: kind_of(segment.kind),
                pool: segment.pool,
                expandable: segment.expandable,
            };
            layout.ranges.insert(recording.to_simulated(segment.address), range);
            for block in &segment.blocks {
                let used = match block.state {
                    BlockState::ActiveAllocated => Use::Held,
                    BlockState::ActivePendingFree => Use::Pending,
                    BlockState::Inactive => Use::Free,
                };
                let requested = block.requested.unwrap_or(block.size);
                let known = Block { size: block.size, used, requested, certain: Size::Known };
                layout.blocks.insert(recording.to_simulated(block.address), known);
            }
        }
        layout
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = (Addr, &Range)> {
        self.ranges.iter().map(|(&addr, range)| (addr, range))
    }

    pub(super) fn blocks_of(
        &self,
        addr: Addr,
        range: &Range,
    ) -> impl Iterator<Item = (Addr, &Block)> {
        self.blocks.range(addr..end(addr, range.size)).map(|(&addr, block)| (addr, block))
    }

    /// One range for each expandable segment.
    pub(super) fn groups(&self) -> Vec<Range> {
        let mut groups: Vec<Range> = Vec::new();
        for range in self.ranges.values().filter(|range| range.expandable) {
            if !groups.iter().any(|group| group.same_pool(range)) {
                groups.push(*range);
            }
        }
        groups
    }

    pub(super) fn block_mut(&mut self, addr: Addr) -> Option<&mut Block> {
        self.blocks.get_mut(&addr)
    }

    /// The range that holds `addr`.
    fn range_of(&self, addr: Addr) -> Option<(Addr, Range)> {
        let (&start, &range) = self.ranges.range(..=addr).next_back()?;
        (addr < end(start, range.size)).then_some((start, range))
    }

    /// The free block that holds `addr`.
    fn free_block_of(&self, addr: Addr) -> Option<(Addr, Block)> {
        let (&start, &block) = self.blocks.range(..=addr).next_back()?;
        (addr < end(start, block.size) && block.used == Use::Free).then_some((start, block))
    }

    /// The block that ends where `addr` begins, in the same range.
    fn before(&self, addr: Addr) -> Option<Addr> {
        let (start, _) = self.range_of(addr)?;
        self.blocks.range(start..addr).next_back().map(|(&addr, _)| addr)
    }

    /// Merges the free block at `addr` with those beside it.
    pub(super) fn merge(&mut self, addr: Addr) {
        let before = self.before(addr).filter(|addr| self.blocks[addr].used == Use::Free);
        let Some((start, range)) = self.range_of(addr) else { return };
        let block = self.blocks[&addr];
        let behind = end(addr, block.size);
        let next = self.blocks.get(&behind).copied();
        let mut size = block.size;
        if behind < end(start, range.size)
            && let Some(next) = next.filter(|next| next.used == Use::Free)
        {
            self.blocks.remove(&behind);
            size += next.size;
        }
        self.blocks.insert(addr, Block::free(size));
        if let Some(before) = before {
            self.blocks.remove(&addr);
            let whole = self.blocks[&before].size + size;
            self.blocks.insert(before, Block::free(whole));
        }
    }

    /// A part of a free block, from `addr` on, is in use, of at least `size`.
    pub(super) fn carve(
        &mut self,
        addr: Addr,
        size: Bytes,
        requested: Bytes,
    ) -> Result<(), Contradiction> {
        let (start, free) = self.free_block_of(addr).ok_or(Contradiction)?;
        let (_, range) = self.range_of(addr).ok_or(Contradiction)?;
        let space = distance(addr, end(start, free.size));
        // In the small pool and in expandable segments nothing stays with a block but its rounding.
        let exact = range.kind == PoolKind::Small || range.expandable;
        let certain = if exact { Size::Known } else { Size::AtLeast };
        if start < addr {
            self.blocks.insert(start, Block::free(distance(start, addr)));
        }
        let taken = size.min(space);
        let block = Block { size: taken, used: Use::Pending, requested, certain };
        self.blocks.insert(addr, block);
        if taken < space {
            self.blocks.insert(end(addr, taken), Block::free(space - taken));
        }
        if size > space { Err(Contradiction) } else { Ok(()) }
    }

    /// The free memory before the block at `addr` belongs to the block before that, if its size was
    /// only known to be at least so much.
    pub(super) fn explain_gap_before(&mut self, addr: Addr) -> Result<(), Contradiction> {
        let gap = self.before(addr).filter(|gap| self.blocks[gap].used == Use::Free);
        let Some(gap) = gap else { return Ok(()) };
        let owner = self.before(gap).ok_or(Contradiction)?;
        self.widen(owner, gap)
    }

    /// The block at `owner` swallows the free one at `gap`, if its size is a guess.
    fn widen(&mut self, owner: Addr, gap: Addr) -> Result<(), Contradiction> {
        let block = self.blocks[&owner];
        if block.used == Use::Free || block.certain == Size::Known {
            return Err(Contradiction);
        }
        let more = self.blocks.remove(&gap).map_or(Bytes::ZERO, |gap| gap.size);
        let size = block.size + more;
        self.blocks.insert(owner, Block { size, certain: Size::Known, ..block });
        Ok(())
    }

    /// Decides what belongs to blocks whose size is only known to be at least so much: a rest that
    /// is too small to be a block of the large pool (`should_split`), and everything behind a
    /// block that is never split. The free blocks behind those that stay in uncertainty.
    pub(super) fn settle_guesses(&mut self, config: &AllocatorConfig) -> Vec<Addr> {
        let mut open_ended = Vec::new();
        let guesses: Vec<Addr> = self
            .blocks
            .iter()
            .filter(|(_, block)| block.used != Use::Free && block.certain == Size::AtLeast)
            .map(|(&addr, _)| addr)
            .collect();
        for addr in guesses {
            let block = self.blocks[&addr];
            let behind = end(addr, block.size);
            let same_range = self.range_of(addr).map(|(start, _)| start)
                == self.range_of(behind).map(|(start, _)| start);
            let gap = self.blocks.get(&behind).filter(|gap| gap.used == Use::Free && same_range);
            let Some(gap) = gap else { continue };
            let whole = config.max_split_size.is_some_and(|limit| block.size >= limit);
            let belongs = whole || gap.size <= config.small_size;
            if !belongs || self.widen(addr, behind).is_err() {
                open_ended.push(behind);
            }
        }
        open_ended
    }

    /// A segment goes that was got from the device.
    pub(super) fn remove_range(&mut self, addr: Addr, size: Bytes) -> Result<(), Contradiction> {
        let range = self.ranges.remove(&addr).ok_or(Contradiction)?;
        let blocks: Vec<Addr> =
            self.blocks.range(addr..end(addr, range.size)).map(|(&addr, _)| addr).collect();
        let free = blocks.iter().all(|addr| self.blocks[addr].used == Use::Free);
        for addr in blocks {
            self.blocks.remove(&addr);
        }
        if free && range.size == size { Ok(()) } else { Err(Contradiction) }
    }

    /// A range comes back that was given to the device, all of it free.
    pub(super) fn add_range(
        &mut self,
        addr: Addr,
        size: Bytes,
        range: Range,
    ) -> Result<(), Contradiction> {
        let behind = end(addr, size);
        let below = self.ranges.range(..behind).next_back();
        if below.is_some_and(|(&start, other)| end(start, other.size) > addr) {
            return Err(Contradiction);
        }
        self.ranges.insert(addr, Range { size, ..range });
        self.blocks.insert(addr, Block::free(size));
        if range.expandable {
            self.join(addr);
            self.merge(addr);
        }
        Ok(())
    }

    /// Joins the pages at `addr` with those beside them.
    fn join(&mut self, addr: Addr) {
        let mut range = self.ranges[&addr];
        let behind = end(addr, range.size);
        if let Some(next) = self.ranges.get(&behind).copied().filter(|next| next.same_pool(&range))
        {
            self.ranges.remove(&behind);
            range.size += next.size;
            self.ranges.insert(addr, range);
        }
        let before = self.ranges.range(..addr).next_back().map(|(&start, &range)| (start, range));
        if let Some((start, before)) = before
            && end(start, before.size) == addr
            && before.same_pool(&range)
        {
            self.ranges.remove(&addr);
            self.ranges.insert(start, Range { size: before.size + range.size, ..before });
        }
    }

    /// Pages go that were mapped into an expandable segment.
    pub(super) fn remove_pages(&mut self, addr: Addr, size: Bytes) -> Result<(), Contradiction> {
        let (start, range) = self.range_of(addr).ok_or(Contradiction)?;
        let (free_start, free) = self.free_block_of(addr).ok_or(Contradiction)?;
        let (behind, free_end) = (end(addr, size), end(free_start, free.size));
        let range_end = end(start, range.size);
        if behind > free_end || behind > range_end {
            return Err(Contradiction);
        }
        self.blocks.remove(&free_start);
        self.ranges.remove(&start);
        if start < addr {
            self.ranges.insert(start, Range { size: distance(start, addr), ..range });
        }
        if behind < range_end {
            self.ranges.insert(behind, Range { size: distance(behind, range_end), ..range });
        }
        if free_start < addr {
            self.blocks.insert(free_start, Block::free(distance(free_start, addr)));
        }
        if behind < free_end {
            self.blocks.insert(behind, Block::free(distance(behind, free_end)));
        }
        Ok(())
    }
}
