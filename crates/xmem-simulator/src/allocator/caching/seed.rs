//! Doors for those who follow a recording: an allocator that starts with the segments and blocks
//! found there, frees that complete when they did there, and the sizes that blocks had there.

use super::CachingAllocator;
use super::arena::{Block, NONE, Use};
use super::pool::{Pools, SetId};
use super::sizes::SizeRules;
use crate::allocator::{
    BlockHandle, BlockUse, Observer, PoolOptions, RequestIndex, Segment, SegmentId, SegmentState,
};
use crate::config::AllocatorConfig;
use crate::device::Device;
use std::fmt;
use xmem_types::{Addr, Bytes, StreamId};

/// The state that an allocator starts with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed<'s> {
    /// Its segments. States that share a [`SegmentId`] are mapped ranges of one expandable segment;
    /// other than that the numbers mean nothing, as segments are numbered anew in the order given.
    pub segments: &'s [SegmentState],
    /// The addresses at which the address space of expandable segments begins. One that is missing
    /// begins with its first mapped range.
    pub reservations: &'s [(SegmentId, Addr)],
}

/// Blocks in use, by address.
pub type SeededBlocks = Vec<(Addr, BlockHandle)>;

/// The reason why an allocator cannot start with these segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SeedError {
    /// The range overlaps another one, or the address space that is simulated (2^45 to 2^46).
    RangeTaken(Addr),
    /// The blocks of the segment at this address do not cover it in order, without gaps.
    NotCovered(Addr),
}

impl fmt::Display for SeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RangeTaken(addr) => {
                write!(f, "the segment at {:#x} overlaps another range", addr.0)
            }
            Self::NotCovered(addr) => {
                write!(f, "the blocks of the segment at {:#x} do not cover it", addr.0)
            }
        }
    }
}

impl std::error::Error for SeedError {}

impl AllocatorConfig {
    /// The block size that a request of `size` is rounded up to (`round_size`). The block handed
    /// out may be larger still, where what is left of it would be too small.
    #[must_use]
    pub fn rounded(&self, size: Bytes) -> Bytes {
        Bytes(SizeRules::new(self).round(size.get()))
    }
}

impl<O: Observer> CachingAllocator<O> {
    /// An allocator that holds what `seed` says already, and the handles of the blocks in use.
    ///
    /// Statistics count the initial blocks as if it had just been allocated, but no device calls.
    /// All segments and free blocks are equally old to garbage collection. A block that is
    /// [pending](BlockUse::PendingFree) waits for one stream, whose number is not known; each has
    /// one of its own, counted down from the highest. Private pools are taken for those of a
    /// `MemPool` with default options that still exists. The device's limit is not asked.
    ///
    /// # Errors
    /// If the segments contradict each other.
    pub fn seeded(
        config: &AllocatorConfig,
        device: Device,
        observer: O,
        seed: Seed<'_>,
    ) -> Result<(Self, SeededBlocks), SeedError> {
        let mut allocator = Self::new(config, device, observer);
        let mut handles = Vec::new();
        let mut reservations: Vec<SegmentId> = Vec::new();
        for state in seed.segments {
            if !covered(state) {
                return Err(SeedError::NotCovered(state.addr));
            }
            if !state.expandable {
                allocator.seed_segment(state, &mut handles)?;
            } else if !reservations.contains(&state.segment) {
                reservations.push(state.segment);
                let same = |other: &&SegmentState| other.segment == state.segment;
                let mut ranges: Vec<_> = seed.segments.iter().filter(same).collect();
                ranges.sort_by_key(|range| range.addr);
                let known = seed.reservations.iter().find(|(id, _)| *id == state.segment);
                let base = known.map_or(ranges[0].addr, |&(_, base)| base);
                allocator.seed_reservation(base, &ranges, &mut handles)?;
            }
        }
        handles.sort_by_key(|&(addr, _)| addr);
        Ok((allocator, handles))
    }

    /// The device is done with all work that a freed block waits for: it is free. So is, as soon as
    /// the allocator looks, what waits for the same streams and was freed earlier, as a stream
    /// works in order. Nothing happens if the block does not wait.
    ///
    /// The handle is the one that [`free`](crate::FrameworkAllocator::free) was called with.
    pub fn complete(&mut self, block: BlockHandle) {
        for slot in self.streams.finish_those(|slot| slot == block.0) {
            self.complete_free(slot);
        }
    }

    fn seed_segment(
        &mut self,
        state: &SegmentState,
        handles: &mut SeededBlocks,
    ) -> Result<(), SeedError> {
        let (addr, size) = (state.addr, state.size);
        self.device.adopt(addr, size).map_err(|_| SeedError::RangeTaken(addr))?;
        let (set, segment) = self.seed_row(state, addr, size);
        self.counters.segments.add(state.pool, 1);
        self.counters.segment_bytes.add(state.pool, size.get());
        if size.get() >= self.rules.max_split {
            self.counters.oversize_segments.add(1);
        }
        self.count_private(state);
        let mut last = NONE;
        for block in &state.blocks {
            let free = free_block(block.addr, block.size, state, set, segment);
            last = self.seed_behind(last, free);
            self.seed_use(last, block.used, block.requested, handles);
        }
        self.count_split(last);
        Ok(())
    }

    /// One expandable segment that begins at `base`, out of its mapped ranges, in order of address.
    fn seed_reservation(
        &mut self,
        base: Addr,
        ranges: &[&SegmentState],
        handles: &mut SeededBlocks,
    ) -> Result<(), SeedError> {
        let (first, last) = (ranges[0], ranges[ranges.len() - 1]);
        let page = self.rules.page(first.pool);
        let extent = last.end().0.saturating_sub(base.0).next_multiple_of(page);
        let size = self.reservation_size(first.pool).max(extent);
        let taken = |_| SeedError::RangeTaken(base);
        self.device.adopt_reservation(base, Bytes(size)).map_err(taken)?;
        let mapped = ranges.iter().map(|range| range.size).sum();
        let (set, segment) = self.seed_row(first, base, mapped);
        let mut slot = NONE;
        let mut at = base;
        for range in ranges {
            if range.addr < at {
                return Err(SeedError::RangeTaken(range.addr));
            }
            slot = self.seed_unmapped(slot, at, range.addr, first, (set, segment));
            self.device.adopt_pages(range.size);
            self.counters.segment_bytes.add(range.pool, range.size.get());
            self.mappings.map(segment, range.addr, range.size, RequestIndex::default());
            self.count_private(range);
            for block in &range.blocks {
                let free = free_block(block.addr, block.size, range, set, segment);
                slot = self.seed_behind(slot, free);
                self.seed_use(slot, block.used, block.requested, handles);
            }
            at = range.end();
        }
        let end = Addr(base.0 + size);
        self.seed_unmapped(slot, at, end, first, (set, segment));
        Ok(())
    }

    /// Address space without memory from `start` to `end`, if there is any, behind `slot`.
    fn seed_unmapped(
        &mut self,
        slot: u32,
        start: Addr,
        end: Addr,
        state: &SegmentState,
        (set, segment): (SetId, SegmentId),
    ) -> u32 {
        if start == end {
            return slot;
        }
        let block = free_block(start, Bytes(end.0 - start.0), state, set, segment);
        let slot = self.seed_behind(slot, Block { used: Use::Unmapped, ..block });
        self.pools.get_mut(set).unmapped.insert(start.0, slot);
        slot
    }

    /// Writes a segment down.
    fn seed_row(&mut self, state: &SegmentState, addr: Addr, size: Bytes) -> (SetId, SegmentId) {
        let pool = match state.private_pool {
            None => Pools::default_of(state.pool),
            Some(id) => {
                let row = self.private.find(id).unwrap_or_else(|| {
                    self.private.enter(id, PoolOptions::default(), &mut self.pools);
                    self.private.leave(id);
                    self.private.find(id).expect("a pool is made when it is entered")
                });
                Pools::of_pair(self.private.get(row).pools, state.pool)
            }
        };
        let set = self.pools.set_of(pool, state.stream);
        let id = SegmentId(u32::try_from(self.segments.len()).expect("fewer than 2^32 segments"));
        self.segments.push(Segment {
            addr,
            size,
            stream: state.stream,
            pool: state.pool,
            private_pool: state.private_pool,
            expandable: state.expandable,
            born: RequestIndex::default(),
            died: None,
        });
        (set, id)
    }

    fn count_private(&mut self, state: &SegmentState) {
        if let Some(row) = state.private_pool.and_then(|id| self.private.find(id)) {
            self.private.get_mut(row).segments += 1;
        }
    }

    fn seed_behind(&mut self, slot: u32, block: Block) -> u32 {
        if slot == NONE { self.arena.insert(block) } else { self.arena.insert_behind(slot, block) }
    }

    /// Puts a block into the state it is in.
    fn seed_use(
        &mut self,
        slot: u32,
        used: BlockUse,
        requested: Bytes,
        handles: &mut SeededBlocks,
    ) {
        let block = *self.arena.get(slot);
        if used == BlockUse::Free {
            self.insert_free(slot);
            return;
        }
        handles.push((Addr(block.addr), BlockHandle::new(slot)));
        let entry = self.arena.get_mut(slot);
        entry.requested = requested.get();
        entry.used = Use::Allocated;
        self.counters.hand_out(block.kind, block.size, requested.get());
        if used == BlockUse::PendingFree {
            let entry = self.arena.get_mut(slot);
            (entry.used, entry.shared) = (Use::Pending, true);
            self.counters.keep_active();
            self.counters.take_back(block.kind, block.size);
            // Slots are below 2^32, and there is one for each handle.
            self.streams.record(slot, StreamId(u32::MAX - handles.len() as u32));
            self.streams.await_streams(slot);
        } else if block.size >= self.rules.max_split {
            self.counters.oversize_blocks.add(1);
        }
    }

    /// Counts the free blocks of a segment that is split, going back from its last block.
    fn count_split(&mut self, last: u32) {
        let mut slot = last;
        while slot != NONE {
            let block = *self.arena.get(slot);
            if block.used == Use::Free && block.is_split() {
                self.counters.split_free.add(block.kind, 1);
                self.counters.split_free_bytes.add(block.kind, block.size);
            }
            slot = block.prev;
        }
    }
}

/// Returns whether the blocks cover the segment in order, without gaps.
fn covered(state: &SegmentState) -> bool {
    let mut at = state.addr;
    for block in &state.blocks {
        if block.addr != at || block.size == Bytes::ZERO {
            return false;
        }
        at = Addr(at.0.saturating_add(block.size.get()));
    }
    at == state.end() && !state.blocks.is_empty()
}

fn free_block(
    addr: Addr,
    size: Bytes,
    state: &SegmentState,
    set: SetId,
    segment: SegmentId,
) -> Block {
    Block {
        addr: addr.0,
        size: size.get(),
        requested: 0,
        serial: 0,
        born: RequestIndex::default(),
        free_since: 0,
        prev: NONE,
        next: NONE,
        segment,
        set,
        kind: state.pool,
        used: Use::Free,
        expandable: state.expandable,
        shared: false,
    }
}
