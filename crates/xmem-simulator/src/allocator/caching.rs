//! PyTorch's CUDACachingAllocator: `DeviceCachingAllocator::malloc` and `free` of
//! `c10/cuda/CUDACachingAllocator.cpp`, step by step.

use super::arena::{Arena, Block, NONE};
use super::event::{Event, EventAction, Observer};
use super::pool::{PoolId, Pools};
use super::sizes::{SizeRules, TOO_LARGE};
use super::stats::{Counters, Stats};
use super::{
    AllocFailure, BlockHandle, BlockInSegment, BlockView, Framework, FrameworkAllocator,
    OutOfDeviceMemory, PoolKind, RequestIndex, Segment, SegmentId,
};
use crate::config::AllocatorConfig;
use crate::device::Device;
use xmem_types::{Addr, Bytes, StreamId};

/// PyTorch's caching allocator over one device; `O` hears its events.
#[derive(Clone, Debug)]
pub struct CachingAllocator<O = ()> {
    rules: SizeRules,
    device: Device,
    arena: Arena,
    pools: Pools,
    segments: Vec<Segment>,
    counters: Counters,
    observer: O,
}

/// A request as `AllocParams` holds it.
#[derive(Clone, Copy)]
struct Want {
    requested: u64,
    rounded: u64,
    kind: PoolKind,
    pool: PoolId,
    at: RequestIndex,
}

impl<O: Observer> CachingAllocator<O> {
    /// An allocator without segments.
    #[must_use]
    pub fn new(config: &AllocatorConfig, device: Device, observer: O) -> Self {
        Self {
            rules: SizeRules::new(config),
            device,
            arena: Arena::default(),
            pools: Pools::default(),
            segments: Vec::new(),
            counters: Counters::default(),
            observer,
        }
    }

    /// Who hears the events.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// `get_free_block`: best fit, the lowest address among equal sizes. Only the one candidate
    /// is considered.
    fn take_cached(&mut self, want: &Want) -> Option<u32> {
        let free = &mut self.pools.get_mut(want.pool).free;
        let (&key, &slot) = free.range((want.rounded, 0)..).next()?;
        if self.rules.refuses(key.0, want.rounded) {
            return None;
        }
        free.remove(&key);
        Some(slot)
    }

    /// The part of `malloc` after no cached block was found: a new segment, with everything
    /// cached given back if need be.
    fn grow(&mut self, want: &Want) -> Result<u32, AllocFailure> {
        let size = self.rules.segment(want.rounded);
        if let Some(slot) = self.new_segment(want, size) {
            return Ok(slot);
        }
        if self.release_oversize(want)
            && let Some(slot) = self.new_segment(want, size)
        {
            return Ok(slot);
        }
        self.release_cached(want.at);
        self.counters.retries += 1;
        if let Some(slot) = self.new_segment(want, size) {
            return Ok(slot);
        }
        self.counters.ooms += 1;
        let free = self.device.free_bytes().unwrap_or_default();
        let stream = self.pools.get(want.pool).stream;
        self.emit(EventAction::Oom, free.get(), want.rounded, stream);
        Err(AllocFailure::OutOfMemory(OutOfDeviceMemory {
            rounded: Bytes(want.rounded),
            tried: Bytes(size),
        }))
    }

    /// `alloc_block`: a segment as one block that belongs to no free set.
    fn new_segment(&mut self, want: &Want, size: u64) -> Option<u32> {
        let addr = self.device.alloc(Bytes(size)).ok()?;
        let id = SegmentId(u32::try_from(self.segments.len()).expect("fewer than 2^32 segments"));
        let stream = self.pools.get(want.pool).stream;
        self.segments.push(Segment {
            addr,
            size: Bytes(size),
            stream,
            pool: want.kind,
            born: want.at,
            died: None,
        });
        self.counters.segments.add(want.kind, 1);
        self.counters.segment_bytes.add(want.kind, size);
        if size >= self.rules.max_split {
            self.counters.oversize_segments.add(1);
        }
        self.emit(EventAction::SegmentAlloc, addr.0, size, stream);
        Some(self.arena.insert(Block {
            addr: addr.0,
            size,
            requested: 0,
            born: want.at,
            prev: NONE,
            next: NONE,
            segment: id,
            pool: want.pool,
            kind: want.kind,
            allocated: false,
        }))
    }

    /// `alloc_found_block`: splits what is too much off the end and hands the front out.
    fn hand_out(&mut self, slot: u32, want: &Want) {
        let block = self.arena.get_mut(slot);
        block.allocated = true;
        block.requested = want.requested;
        block.born = want.at;
        let (addr, was_split, whole) = (block.addr, block.is_split(), block.size);
        let mut size = whole;
        if self.rules.splits(want.kind, whole, want.rounded) {
            size = want.rounded;
            self.split_off(slot, size, want.at);
            let free_bytes = &mut self.counters.split_free_bytes;
            if was_split {
                free_bytes.sub(want.kind, size);
            } else {
                free_bytes.add(want.kind, whole - size);
                self.counters.split_free.add(want.kind, 1);
            }
        } else if was_split {
            self.counters.split_free_bytes.sub(want.kind, whole);
            self.counters.split_free.sub(want.kind, 1);
        }
        self.counters.blocks.add(want.kind, 1);
        self.counters.block_bytes.add(want.kind, size);
        self.counters.requested.add(want.kind, want.requested);
        if size >= self.rules.max_split {
            self.counters.oversize_blocks.add(1);
        }
        let stream = self.pools.get(want.pool).stream;
        self.emit(EventAction::Alloc, addr, want.requested, stream);
    }

    /// Shortens a block to `size`; the rest becomes a free block behind it.
    fn split_off(&mut self, slot: u32, size: u64, at: RequestIndex) {
        let front = *self.arena.get(slot);
        let rest = Block {
            addr: front.addr + size,
            size: front.size - size,
            requested: 0,
            born: at,
            prev: slot,
            allocated: false,
            ..front
        };
        let key = (rest.size, rest.addr);
        let rest_slot = self.arena.insert(rest);
        if front.next != NONE {
            self.arena.get_mut(front.next).prev = rest_slot;
        }
        let block = self.arena.get_mut(slot);
        block.size = size;
        block.next = rest_slot;
        self.pools.get_mut(front.pool).free.insert(key, rest_slot);
    }

    /// `try_merge_blocks` with the neighbour `other`, if that is free: it is swallowed, and its
    /// size returned.
    fn absorb(&mut self, slot: u32, other: u32) -> u64 {
        if other == NONE || self.arena.get(other).allocated {
            return 0;
        }
        let neighbour = *self.arena.get(other);
        self.pools.get_mut(neighbour.pool).free.remove(&(neighbour.size, neighbour.addr));
        self.arena.remove(other);
        let block = self.arena.get_mut(slot);
        block.size += neighbour.size;
        let (outer, before) = if neighbour.addr < block.addr {
            block.addr = neighbour.addr;
            block.prev = neighbour.prev;
            (neighbour.prev, true)
        } else {
            block.next = neighbour.next;
            (neighbour.next, false)
        };
        if outer != NONE {
            let outer = self.arena.get_mut(outer);
            if before {
                outer.next = slot;
            } else {
                outer.prev = slot;
            }
        }
        neighbour.size
    }

    /// `release_available_cached_blocks`: with `max_split_size`, tries to make room by giving back
    /// oversize blocks alone. Whether enough was given back.
    fn release_oversize(&mut self, want: &Want) -> bool {
        if self.rules.max_split == u64::MAX {
            return false;
        }
        let key = want.rounded.max(self.rules.max_split);
        let free = &self.pools.get(want.pool).free;
        if let Some((_, &slot)) = free.range((key, 0)..).next() {
            return self.release_block(slot, want.at);
        }
        let mut oversize = Vec::new();
        let mut bytes = 0;
        for (&(size, _), &slot) in free.range((self.rules.max_split, 0)..).rev() {
            if bytes >= key {
                break;
            }
            oversize.push(slot);
            bytes += size;
        }
        for slot in oversize {
            self.release_block(slot, want.at);
        }
        bytes >= key
    }

    /// `release_block`: gives a free block that is a whole segment back to the device.
    fn release_block(&mut self, slot: u32, at: RequestIndex) -> bool {
        let block = *self.arena.get(slot);
        if block.is_split() {
            return false;
        }
        self.pools.get_mut(block.pool).free.remove(&(block.size, block.addr));
        self.arena.remove(slot);
        let segment = &mut self.segments[block.segment.index()];
        segment.died = Some(at);
        let (addr, size, stream) = (segment.addr, segment.size, segment.stream);
        self.device.free(addr, size);
        self.counters.segments.sub(block.kind, 1);
        self.counters.segment_bytes.sub(block.kind, size.get());
        if size.get() >= self.rules.max_split {
            self.counters.oversize_segments.sub(1);
        }
        self.emit(EventAction::SegmentFree, addr.0, size.get(), stream);
        true
    }

    fn emit(&mut self, action: EventAction, addr: u64, size: u64, stream: StreamId) {
        self.observer.event(Event { action, addr: Addr(addr), size: Bytes(size), stream });
    }
}

impl Framework for AllocatorConfig {
    type Allocator = CachingAllocator;

    fn over(&self, device: Device) -> CachingAllocator {
        CachingAllocator::new(self, device, ())
    }
}

impl<O: Observer> FrameworkAllocator for CachingAllocator<O> {
    fn allocate(
        &mut self,
        at: RequestIndex,
        size: Bytes,
        stream: StreamId,
    ) -> Result<Option<BlockHandle>, AllocFailure> {
        let requested = size.get();
        if requested == 0 {
            return Ok(None);
        }
        if requested >= TOO_LARGE {
            return Err(AllocFailure::TooLarge);
        }
        let rounded = self.rules.round(requested);
        let kind = self.rules.pool(rounded);
        let want = Want { requested, rounded, kind, pool: self.pools.of(stream, kind), at };
        let slot = match self.take_cached(&want) {
            Some(slot) => slot,
            None => self.grow(&want)?,
        };
        self.hand_out(slot, &want);
        Ok(Some(BlockHandle::new(slot)))
    }

    fn free(&mut self, _at: RequestIndex, block: BlockHandle) {
        let slot = block.0;
        let block = *self.arena.get(slot);
        debug_assert!(block.allocated, "a handle is freed once");
        let stream = self.pools.get(block.pool).stream;
        self.counters.blocks.sub(block.kind, 1);
        self.counters.block_bytes.sub(block.kind, block.size);
        self.counters.requested.sub(block.kind, block.requested);
        if block.size >= self.rules.max_split {
            self.counters.oversize_blocks.sub(1);
        }
        self.emit(EventAction::FreeRequested, block.addr, block.requested, stream);
        self.emit(EventAction::FreeCompleted, block.addr, block.requested, stream);

        self.arena.get_mut(slot).allocated = false;
        let before = self.absorb(slot, block.prev);
        let behind = self.absorb(slot, block.next);
        let merged = *self.arena.get(slot);
        self.pools.get_mut(merged.pool).free.insert((merged.size, merged.addr), slot);

        let swallowed = u64::from(before > 0) + u64::from(behind > 0);
        let (count, bytes) = if merged.is_split() { (1, merged.size) } else { (0, 0) };
        self.counters.split_free.change(block.kind, count, swallowed);
        self.counters.split_free_bytes.change(block.kind, bytes, before + behind);
    }

    /// `release_cached_blocks`: the large pool, then the small one, each in the order of its set.
    fn release_cached(&mut self, at: RequestIndex) {
        self.counters.syncs += 1;
        for kind in [PoolKind::Large, PoolKind::Small] {
            for pool in self.pools.in_stream_order(kind) {
                let cached: Vec<u32> = self.pools.get(pool).free.values().copied().collect();
                for slot in cached {
                    self.release_block(slot, at);
                }
            }
        }
    }

    fn block(&self, block: BlockHandle) -> BlockView {
        let block = self.arena.get(block.0);
        BlockView {
            addr: Addr(block.addr),
            size: Bytes(block.size),
            requested: Bytes(block.requested),
            segment: block.segment,
            stream: self.pools.get(block.pool).stream,
            born: block.born,
        }
    }

    fn segments(&self) -> &[Segment] {
        &self.segments
    }

    fn layout(&self) -> Vec<BlockInSegment> {
        let mut blocks: Vec<_> = self
            .arena
            .iter()
            .map(|block| BlockInSegment {
                addr: Addr(block.addr),
                size: Bytes(block.size),
                requested: block.allocated.then_some(Bytes(block.requested)),
                segment: block.segment,
            })
            .collect();
        blocks.sort_by_key(|block| block.addr);
        blocks
    }

    fn allocated(&self) -> Bytes {
        Bytes(self.counters.block_bytes.current())
    }

    fn reserved(&self) -> Bytes {
        Bytes(self.counters.segment_bytes.current())
    }

    fn largest_free(&self) -> Bytes {
        Bytes(self.pools.largest())
    }

    fn stats(&self) -> Stats {
        self.counters.stats()
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }
}
