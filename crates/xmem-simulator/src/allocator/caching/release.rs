//! Giving memory back to the device.

use super::CachingAllocator;
use super::malloc::Want;
use super::pool::{PoolId, Pools};
use super::private::PrivateId;
use crate::allocator::{EventAction, Observer, PoolKind, RequestIndex};
use crate::config::Feature;

impl<O: Observer> CachingAllocator<O> {
    /// `release_cached_blocks` of all pools: the large default pool, the small one, and the
    /// private pools that are no longer used. During a capture only the latter, since 2.8.
    pub(super) fn empty_cache(&mut self, at: RequestIndex) {
        if self.private.no_capture(self.current) {
            self.synchronize_and_free();
            for kind in [PoolKind::Large, PoolKind::Small] {
                self.release_blocks(Pools::default_of(kind), at);
            }
        } else if !Feature::ReleaseDuringCapture.is_in(self.limits.release) {
            return;
        }
        for private in self.private.freeable() {
            self.release_private(private, at);
        }
    }

    /// The part of `release_cached_blocks` that deals with one unused private pool.
    pub(super) fn release_private(&mut self, private: PrivateId, at: RequestIndex) {
        let pools = self.private.get(private).pools;
        for kind in [PoolKind::Small, PoolKind::Large] {
            self.release_blocks(Pools::of_pair(pools, kind), at);
        }
        self.private.forget_if_empty(private);
    }

    /// `release_blocks`: whole segments go back, then whole pages of expandable ones.
    fn release_blocks(&mut self, pool: PoolId, at: RequestIndex) {
        let mut expandable = Vec::new();
        for slot in self.pools.free_blocks(pool) {
            let block = self.arena.get(slot);
            if block.expandable {
                expandable.push(slot);
            } else if !block.is_split() {
                self.release_block(slot, at);
            }
        }
        for slot in expandable {
            self.unmap_block(slot, at);
        }
    }

    /// `release_block`: gives a free block that is a whole segment back to the device.
    fn release_block(&mut self, slot: u32, at: RequestIndex) {
        let block = *self.arena.get(slot);
        self.remove_free(slot);
        self.arena.remove(slot);
        let segment = &mut self.segments[block.segment.index()];
        segment.died = Some(at);
        let (addr, size, stream) = (segment.addr, segment.size, segment.stream);
        self.counters.device_frees += 1;
        self.emit(EventAction::SegmentFree, addr.0, size.get(), stream);
        self.device.free(addr, size);
        self.counters.segments.sub(block.kind, 1);
        self.counters.segment_bytes.sub(block.kind, size.get());
        if size.get() >= self.rules.max_split {
            self.counters.oversize_segments.sub(1);
        }
        if let Some(owner) = self.pools.pool_of(block.set).owner {
            self.private.get_mut(owner).segments -= 1;
        }
    }

    /// `release_available_cached_blocks`: with `max_split_size`, tries to make space by releasing
    /// oversize blocks alone. Whether enough was released.
    pub(super) fn release_oversize(&mut self, want: &Want) -> bool {
        if self.rules.max_split == u64::MAX {
            return false;
        }
        let key = want.rounded.max(self.rules.max_split);
        let free = &self.pools.get(want.set).free;
        let expandable = |slot: &u32| self.arena.get(*slot).expandable;
        let large_enough = free.range((key, 0)..).map(|(_, &slot)| slot);
        if let Some(slot) = large_enough.into_iter().find(|slot| !expandable(slot)) {
            self.release_block(slot, want.at);
            return true;
        }
        let mut oversize = Vec::new();
        let mut bytes = 0;
        for (&(size, _), &slot) in free.range((self.rules.max_split, 0)..).rev() {
            if bytes >= key {
                break;
            }
            if !expandable(&slot) {
                oversize.push(slot);
                bytes += size;
            }
        }
        for slot in oversize {
            self.release_block(slot, want.at);
        }
        bytes >= key
    }

    /// `garbage_collect_cached_blocks`: above the threshold, releases the segments of the large
    /// default pool that were not used for longest, until enough is released.
    pub(super) fn collect_garbage(&mut self, at: RequestIndex) {
        let Some(threshold) = self.limits.collection_threshold() else { return };
        let held = self.counters.segment_bytes.current();
        if held <= threshold {
            return;
        }
        let target = held - threshold;
        let pool = Pools::default_of(PoolKind::Large);
        let searches = self.pools.pool(pool).searches;
        // (age, size, slot), in the order of the pool's set.
        let mut candidates: Vec<(u64, u64, u32)> = self
            .pools
            .free_blocks(pool)
            .into_iter()
            .map(|slot| (slot, self.arena.get(slot)))
            .filter(|(_, block)| !block.is_split() && !block.expandable)
            .map(|(slot, block)| (searches - block.free_since, block.size, slot))
            .collect();
        let mut total_age: u64 = candidates.iter().map(|&(age, ..)| age).sum();
        let mut reclaimed = 0;
        while reclaimed < target && !candidates.is_empty() {
            let average = total_age as f64 / candidates.len() as f64;
            let (old, young): (Vec<_>, Vec<_>) =
                candidates.into_iter().partition(|&(age, ..)| age as f64 >= average);
            for (age, size, slot) in old {
                total_age -= age;
                reclaimed += size;
                self.release_block(slot, at);
            }
            candidates = young;
        }
    }
}
