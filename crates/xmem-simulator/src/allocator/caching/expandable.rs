//! Expandable segments: address space that is reserved once and mapped page by page
//! (`ExpandableSegment`, CUDA's virtual memory management).

use super::CachingAllocator;
use super::arena::{Block, NONE, Use};
use super::malloc::Want;
use crate::allocator::{EventAction, Observer, PoolKind, RequestIndex};
use crate::config::Reserve;
use xmem_types::{Addr, Bytes, GIB};

/// The total that is assumed for a device without limit where address space is reserved.
const TOTAL_WITHOUT_LIMIT: u64 = 256 * GIB;

impl<O: Observer> CachingAllocator<O> {
    /// The part of `get_free_block` for expandable segments: of the candidates from the best fit
    /// on, the first whose segment would grow least is taken.
    pub(super) fn least_expandable<'a>(
        &self,
        first: ((u64, u64), u32),
        more: impl Iterator<Item = (&'a (u64, u64), &'a u32)>,
    ) -> ((u64, u64), u32) {
        let size_with_room = |slot: u32| {
            let block = self.arena.get(slot);
            let space = match block.next {
                NONE => 0,
                next => {
                    let next = self.arena.get(next);
                    if next.used == Use::Unmapped { next.size } else { 0 }
                }
            };
            block.size + space
        };
        let mut best = first;
        for (&key, &slot) in more {
            let grows = self.arena.get(best.1).expandable;
            if !grows || size_with_room(slot) >= size_with_room(best.1) {
                break;
            }
            best = (key, slot);
        }
        best
    }

    /// `try_allocate_expandable_block`: maps pages until a free block is large enough, and takes it
    /// out of its set. Pages that were mapped stay if others cannot be.
    pub(super) fn expand(&mut self, want: &Want) -> Option<u32> {
        let mut slot = self.expandable_candidate(want)?;
        let block = *self.arena.get(slot);
        if block.used == Use::Unmapped {
            self.map_block(slot, block.size.min(want.rounded), want)?;
        }
        while self.arena.get(slot).size < want.rounded {
            let block = *self.arena.get(slot);
            let next = block.next;
            let missing = want.rounded - block.size;
            self.map_block(next, missing.min(self.arena.get(next).size), want)?;
            // The mapped block swallowed the free one before it.
            slot = next;
        }
        self.remove_free(slot);
        Some(slot)
    }

    /// `find_expandable_block`: the lowest run of free and unmapped blocks that is long enough, or
    /// a new segment.
    fn expandable_candidate(&mut self, want: &Want) -> Option<u32> {
        let allocatable = |slot: u32| {
            slot != NONE && matches!(self.arena.get(slot).used, Use::Free | Use::Unmapped)
        };
        for &unmapped in self.pools.get(want.set).unmapped.values() {
            let before = self.arena.get(unmapped).prev;
            let start = if allocatable(before) { before } else { unmapped };
            let (mut slot, mut bytes) = (start, 0u64);
            while bytes < want.rounded && allocatable(slot) {
                bytes = bytes.saturating_add(self.arena.get(slot).size);
                slot = self.arena.get(slot).next;
            }
            if bytes >= want.rounded {
                return Some(start);
            }
        }
        let reservation = self.reserve(want)?;
        // A request beyond the address space of one segment has nowhere to go.
        (self.arena.get(reservation).size >= want.rounded).then_some(reservation)
    }

    /// Address space of a new segment: the device's total and an eighth more, in whole pages.
    pub(super) fn reservation_size(&self, kind: PoolKind) -> u64 {
        // Nothing may be known of the device.
        let total = self.limits.address_total.unwrap_or(TOTAL_WITHOUT_LIMIT);
        let most = total + total / 8;
        let size = match self.limits.reserve {
            None => most,
            Some(Reserve::PartOfTotal(part)) => ((part * total as f64) as u64).min(most),
            Some(Reserve::Size(size)) => size.get().min(most),
        };
        size.next_multiple_of(self.rules.page(kind))
    }

    /// Reserves address space for a new segment. All of it is one unmapped block.
    fn reserve(&mut self, want: &Want) -> Option<u32> {
        let size = self.reservation_size(want.kind);
        let addr = self.device.reserve(Bytes(size)).ok()?.0;
        let segment = self.add_segment(want, addr, 0);
        let slot = self.arena.insert(Block {
            addr,
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
            used: Use::Unmapped,
            expandable: true,
            shared: false,
        });
        self.pools.get_mut(want.set).unmapped.insert(addr, slot);
        Some(slot)
    }

    /// `map_block`: maps the pages of an unmapped block that cover its first `size` bytes. What
    /// was mapped becomes a free block, merged with those beside it.
    fn map_block(&mut self, slot: u32, size: u64, want: &Want) -> Option<()> {
        let block = *self.arena.get(slot);
        let mapped = size.next_multiple_of(self.rules.page(block.kind));
        self.device.map(Bytes(mapped)).ok()?;
        self.pools.get_mut(block.set).unmapped.remove(&block.addr);
        if mapped < block.size {
            let block_slot = self.arena.get_mut(slot);
            block_slot.size = mapped;
            let rest = Block { addr: block.addr + mapped, size: block.size - mapped, ..block };
            let rest_slot = self.arena.insert_behind(slot, rest);
            self.pools.get_mut(block.set).unmapped.insert(rest.addr, rest_slot);
        }
        let (prev, next) = (self.arena.get(slot).prev, self.arena.get(slot).next);
        self.absorb(slot, prev, Use::Free);
        self.absorb(slot, next, Use::Free);
        self.insert_free(slot);

        self.counters.segment_bytes.add(block.kind, mapped);
        self.counters.device_allocs += 1;
        self.segments[block.segment.index()].size += Bytes(mapped);
        self.mappings.map(block.segment, Addr(block.addr), Bytes(mapped), want.at);
        self.emit(EventAction::SegmentMap, block.addr, mapped, want.stream);
        Some(())
    }

    /// `unmap_block`: the pages that lie wholly inside a free block go back to the device. A
    /// segment without pages is given up.
    pub(super) fn unmap_block(&mut self, slot: u32, at: RequestIndex) {
        let block = *self.arena.get(slot);
        let page = self.rules.page(block.kind);
        let base = self.segments[block.segment.index()].addr.0;
        let start = base + (block.addr - base).next_multiple_of(page);
        let end = base + (block.end() - base) / page * page;
        if start >= end {
            return;
        }
        self.remove_free(slot);
        if start > block.addr {
            // The front stays free, in this slot; the pages get a block behind it.
            self.arena.get_mut(slot).size = start - block.addr;
        }
        let rest = Block { addr: start, size: block.end() - start, ..block };
        let slot = if start > block.addr {
            let pages = self.arena.insert_behind(slot, rest);
            self.arena.exchange_serials(slot, pages);
            self.insert_free(slot);
            pages
        } else {
            slot
        };
        if block.end() > end {
            self.arena.get_mut(slot).size = end - start;
            let tail = Block { addr: end, size: block.end() - end, ..block };
            let tail = self.arena.insert_behind(slot, tail);
            self.insert_free(tail);
        }
        self.arena.get_mut(slot).used = Use::Unmapped;
        let (prev, next) = (self.arena.get(slot).prev, self.arena.get(slot).next);
        self.absorb(slot, prev, Use::Unmapped);
        self.absorb(slot, next, Use::Unmapped);
        let unmapped = *self.arena.get(slot);
        self.pools.get_mut(block.set).unmapped.insert(unmapped.addr, slot);

        let size = end - start;
        // `ExpandableSegment::unmapHandles` waits for the segment's stream.
        self.streams.finish_on(self.stream_of(block.set));
        self.device.unmap(Bytes(size));
        self.counters.segment_bytes.sub(block.kind, size);
        self.counters.device_frees += 1;
        self.segments[block.segment.index()].size -= Bytes(size);
        self.mappings.unmap(Addr(start), Bytes(size), at);
        if let Some(owner) = self.pools.pool_of(block.set).owner {
            let owner = self.private.get_mut(owner);
            owner.segments = owner.segments.saturating_sub(1);
        }
        let stream = self.stream_of(block.set);
        self.emit(EventAction::SegmentUnmap, start, size, stream);
        if !unmapped.is_split() {
            self.give_up_reservation(slot, at);
        }
    }

    /// `release_expandable_segment`.
    fn give_up_reservation(&mut self, slot: u32, at: RequestIndex) {
        let block = *self.arena.get(slot);
        self.pools.get_mut(block.set).unmapped.remove(&block.addr);
        self.arena.remove(slot);
        self.device.unreserve(Addr(block.addr), Bytes(block.size));
        self.segments[block.segment.index()].died = Some(at);
    }
}
