//! `malloc`: a cached block, or a new segment, or what releasing memory makes possible.

use super::CachingAllocator;
use super::arena::{Block, NONE, Use};
use super::pool::{PoolId, Pools, SetId};
use super::sizes::TOO_LARGE;
use crate::allocator::{
    AllocFailure, BlockHandle, EventAction, Observer, OutOfDeviceMemory, PoolKind, RequestIndex,
    Segment, SegmentId, Splitting,
};
use crate::config::{Feature, OnExcess};
use xmem_types::{Bytes, StreamId};

/// A request as `AllocParams` holds it.
#[derive(Clone, Copy)]
pub(super) struct Want {
    pub(super) requested: u64,
    pub(super) rounded: u64,
    /// `alloc_size`: the segment that would be requested from the device.
    pub(super) segment: u64,
    pub(super) kind: PoolKind,
    pub(super) pool: PoolId,
    pub(super) set: SetId,
    pub(super) stream: StreamId,
    pub(super) at: RequestIndex,
}

/// The reason why no segment was obtained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failed {
    /// The device or the memory fraction has no space.
    NoRoom,
    /// Refused at once (`throw_on_cudamalloc_oom`).
    Refused,
}

impl<O: Observer> CachingAllocator<O> {
    pub(super) fn malloc(
        &mut self,
        at: RequestIndex,
        requested: u64,
        stream: StreamId,
    ) -> Result<Option<BlockHandle>, AllocFailure> {
        if requested == 0 {
            return Ok(None);
        }
        if requested >= TOO_LARGE {
            return Err(AllocFailure::TooLarge);
        }
        self.current = stream;
        if self.private.no_capture(stream) {
            self.process_events();
        }
        let rounded = self.rules.round(requested);
        let kind = self.rules.pool(rounded);
        let pool = self.private.route(stream, kind);
        let set = self.pools.set_of(pool, stream);
        let segment = self.rules.segment(rounded);
        let want = Want { requested, rounded, segment, kind, pool, set, stream, at };
        let (slot, want) = match self.take_cached(&want) {
            Some(slot) => (slot, want),
            None => self.grow(&want)?,
        };
        self.hand_out(slot, &want);
        Ok(Some(BlockHandle::new(slot)))
    }

    /// `get_free_block`: best fit, the lowest address among equal sizes. Only one candidate is
    /// considered.
    fn take_cached(&mut self, want: &Want) -> Option<u32> {
        if self.limits.counts_searches() {
            self.pools.count_search(want.pool);
        }
        let free = &self.pools.get(want.set).free;
        let mut candidates = free.range((want.rounded, 0)..);
        let (mut key, mut slot) = candidates.next().map(|(&key, &slot)| (key, slot))?;
        if self.arena.get(slot).expandable {
            (key, slot) = self.least_expandable((key, slot), candidates);
        }
        if self.rules.refuses(key.0, want.rounded) {
            return None;
        }
        self.pools.get_mut(want.set).free.remove(&key);
        Some(slot)
    }

    /// The part of `malloc` after no cached block was found: a new segment, with cached memory
    /// released if need be.
    fn grow(&mut self, want: &Want) -> Result<(u32, Want), AllocFailure> {
        // A search behind `trigger_free_memory_callbacks` would find the same: nothing.
        self.collect_garbage(want.at);
        match self.new_segment(want) {
            Ok(slot) => return Ok((slot, *want)),
            Err(Failed::Refused) => {
                self.counters.rejections += 1;
                return Err(self.out_of_memory(want));
            }
            Err(Failed::NoRoom) => {}
        }
        let early = Feature::LastResortBeforeRelease.is_in(self.limits.release);
        if early && let Some(found) = self.last_resort(want) {
            return Ok(found);
        }
        if self.release_oversize(want)
            && let Ok(slot) = self.new_segment(want)
        {
            return Ok((slot, *want));
        }
        if self.private.no_capture(want.stream) {
            self.empty_cache(want.at);
            self.counters.retries += 1;
            if let Ok(slot) = self.new_segment(want) {
                return Ok((slot, *want));
            }
        }
        if !early && let Some(found) = self.last_resort(want) {
            return Ok(found);
        }
        self.counters.ooms += 1;
        let free = self.device.free_bytes().unwrap_or_default();
        self.emit(EventAction::Oom, free.get(), want.rounded, want.stream);
        Err(self.out_of_memory(want))
    }

    /// A block cached in a private pool that was made to help out.
    fn last_resort(&mut self, want: &Want) -> Option<(u32, Want)> {
        // With the option, those pools have no other segments either.
        let overlooked = self.rules.expandable
            && Feature::LastResortOverlooksExpandable.is_in(self.limits.release);
        if overlooked || self.pools.pool(want.pool).owner.is_some() {
            return None;
        }
        for private in self.private.last_resorts() {
            let pool = Pools::of_pair(self.private.get(private).pools, want.kind);
            let set = self.pools.set_of(pool, want.stream);
            let there = Want { pool, set, ..*want };
            if let Some(slot) = self.take_cached(&there) {
                return Some((slot, there));
            }
        }
        None
    }

    fn out_of_memory(&self, want: &Want) -> AllocFailure {
        AllocFailure::OutOfMemory(OutOfDeviceMemory {
            rounded: Bytes(want.rounded),
            tried: Bytes(want.segment),
        })
    }

    /// `alloc_block`: a block that belongs to no free set, big enough.
    fn new_segment(&mut self, want: &Want) -> Result<u32, Failed> {
        let held = self.counters.segment_bytes.current();
        let after = held.saturating_add(want.segment);
        if self.limits.allowed.is_some_and(|allowed| after > allowed) {
            return Err(Failed::NoRoom);
        }
        if self.limits.on_excess == OnExcess::Refuse {
            let part = self.limits.total.map(|total| (self.limits.fraction * total as f64) as u64);
            if part.is_some_and(|part| after > part) {
                return Err(Failed::Refused);
            }
        }
        let slot =
            if self.rules.expandable { self.expand(want) } else { self.device_segment(want) };
        let slot = slot.ok_or(Failed::NoRoom)?;
        if let Some(owner) = self.pools.pool(want.pool).owner {
            self.private.get_mut(owner).segments += 1;
        }
        Ok(slot)
    }

    /// `cudaMalloc`: a segment as one block.
    fn device_segment(&mut self, want: &Want) -> Option<u32> {
        let size = want.segment;
        let addr = self.device.alloc(Bytes(size)).ok()?;
        let segment = self.add_segment(want, addr.0, size);
        self.counters.segments.add(want.kind, 1);
        self.counters.segment_bytes.add(want.kind, size);
        self.counters.device_allocs += 1;
        if size >= self.rules.max_split {
            self.counters.oversize_segments.add(1);
        }
        self.emit(EventAction::SegmentAlloc, addr.0, size, want.stream);
        Some(self.arena.insert(Block {
            addr: addr.0,
            size,
            requested: 0,
            born: want.at,
            free_since: 0,
            serial: 0,
            prev: NONE,
            next: NONE,
            segment,
            set: want.set,
            kind: want.kind,
            used: Use::Free,
            expandable: false,
            shared: false,
        }))
    }

    /// Writes a new segment down.
    pub(super) fn add_segment(&mut self, want: &Want, addr: u64, size: u64) -> SegmentId {
        let id = SegmentId(u32::try_from(self.segments.len()).expect("fewer than 2^32 segments"));
        let owner = self.pools.pool(want.pool).owner;
        self.segments.push(Segment {
            addr: xmem_types::Addr(addr),
            size: Bytes(size),
            stream: want.stream,
            pool: want.kind,
            private_pool: owner.map(|owner| self.private.get(owner).id),
            expandable: self.rules.expandable,
            born: want.at,
            died: None,
        });
        id
    }

    /// `alloc_found_block`: splits what is too much off the end and hands the front out.
    fn hand_out(&mut self, slot: u32, want: &Want) {
        let block = self.arena.get_mut(slot);
        block.used = Use::Allocated;
        block.requested = want.requested;
        block.born = want.at;
        let (addr, was_split, whole) = (block.addr, block.is_split(), block.size);
        let counted = !block.expandable;
        let mut size = whole;
        if self.splitting_of(want.pool) == Splitting::Usual
            && self.rules.splits(want.kind, whole, want.rounded)
        {
            size = want.rounded;
            self.split_off(slot, size);
            let free_bytes = &mut self.counters.split_free_bytes;
            if was_split && counted {
                free_bytes.sub(want.kind, size);
            } else if counted {
                free_bytes.add(want.kind, whole - size);
                self.counters.split_free.add(want.kind, 1);
            }
        } else if was_split && counted {
            self.counters.split_free_bytes.sub(want.kind, whole);
            self.counters.split_free.sub(want.kind, 1);
        }
        self.counters.hand_out(want.kind, size, want.requested);
        if size >= self.rules.max_split {
            self.counters.oversize_blocks.add(1);
        }
        self.emit(EventAction::Alloc, addr, want.requested, want.stream);
    }

    fn splitting_of(&self, pool: PoolId) -> Splitting {
        let owner = self.pools.pool(pool).owner;
        owner.map_or(Splitting::Usual, |owner| self.private.get(owner).options.splitting)
    }

    /// Shortens a block to `size`; the rest becomes a free block behind it.
    fn split_off(&mut self, slot: u32, size: u64) {
        let whole = *self.arena.get(slot);
        self.arena.get_mut(slot).size = size;
        let rest =
            Block { addr: whole.addr + size, size: whole.size - size, requested: 0, ..whole };
        let rest = self.arena.insert_behind(slot, rest);
        self.arena.exchange_serials(slot, rest);
        self.insert_free(rest);
    }
}
