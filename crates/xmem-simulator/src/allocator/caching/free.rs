//! `free`: at once, or when other streams are done with the block.

use super::CachingAllocator;
use super::arena::{NONE, Use};
use super::private::PrivateId;
use crate::allocator::{EventAction, Observer, RequestIndex};

impl<O: Observer> CachingAllocator<O> {
    pub(super) fn take_back(&mut self, _at: RequestIndex, slot: u32) {
        let block = *self.arena.get(slot);
        debug_assert!(block.used == Use::Allocated, "a handle is freed once");
        if block.shared {
            self.counters.keep_active();
        }
        self.counters.take_back(block.kind, block.size);
        let stream = self.stream_of(block.set);
        self.emit(EventAction::FreeRequested, block.addr, block.requested, stream);
        if block.size >= self.rules.max_split {
            self.counters.oversize_blocks.sub(1);
        }
        if !block.shared {
            self.complete_free(slot);
            return;
        }
        self.arena.get_mut(slot).used = Use::Pending;
        if self.streams.free_awaited(slot) {
            return;
        }
        if self.private.no_capture(self.current) {
            self.streams.await_streams(slot);
        } else {
            self.streams.defer(slot);
        }
    }

    /// `process_events`.
    pub(super) fn process_events(&mut self) {
        if self.streams.nothing_waits() {
            return;
        }
        self.await_deferred();
        if self.device.finishes_at_once() {
            self.streams.finish();
        }
        self.complete_frees();
    }

    /// `synchronize_and_free_events`.
    pub(super) fn synchronize_and_free(&mut self) {
        self.counters.syncs += 1;
        self.await_deferred();
        self.streams.finish();
        self.complete_frees();
        for slot in self.streams.complete_all() {
            self.complete_free(slot);
        }
    }

    /// `synchronize_and_free_events` of one private pool's blocks.
    pub(super) fn synchronize_and_free_of(&mut self, private: PrivateId) {
        self.counters.syncs += 1;
        if self.private.no_capture(self.current) {
            self.await_deferred();
        }
        let Self { streams, arena, pools, .. } = self;
        let completed =
            streams.finish_those(|slot| pools.pool_of(arena.get(slot).set).owner == Some(private));
        let awaited = streams
            .complete_those(|slot| pools.pool_of(arena.get(slot).set).owner == Some(private));
        for slot in completed.into_iter().chain(awaited) {
            self.complete_free(slot);
        }
    }

    fn await_deferred(&mut self) {
        for slot in self.streams.await_deferred() {
            self.complete_free(slot);
        }
    }

    fn complete_frees(&mut self) {
        for slot in self.streams.completed() {
            self.complete_free(slot);
        }
    }

    /// `free_block`: merges the block with its free neighbors.
    pub(super) fn complete_free(&mut self, slot: u32) {
        let block = *self.arena.get(slot);
        let stream = self.stream_of(block.set);
        self.emit(EventAction::FreeCompleted, block.addr, block.requested, stream);
        self.arena.get_mut(slot).shared = false;
        let before = self.absorb(slot, block.prev, Use::Free);
        let behind = self.absorb(slot, block.next, Use::Free);
        self.insert_free(slot);
        if !block.expandable {
            let merged = self.arena.get(slot);
            let swallowed = u64::from(before > 0) + u64::from(behind > 0);
            let (count, bytes) = if merged.is_split() { (1, merged.size) } else { (0, 0) };
            self.counters.split_free.change(block.kind, count, swallowed);
            self.counters.split_free_bytes.change(block.kind, bytes, before + behind);
        }
        self.counters.complete(block.kind, block.size, block.requested);
    }

    /// `try_merge_blocks` with the neighbor `other`, if that is used as `used`: it is swallowed,
    /// and its size returned.
    pub(super) fn absorb(&mut self, slot: u32, other: u32, used: Use) -> u64 {
        if other == NONE || self.arena.get(other).used != used {
            return 0;
        }
        let neighbor = *self.arena.get(other);
        let key = self.pools.key(&neighbor, &self.segments);
        let set = self.pools.get_mut(neighbor.set);
        match used {
            Use::Unmapped => set.unmapped.remove(&neighbor.addr),
            _ => set.free.remove(&key),
        };
        self.arena.swallow(slot, other);
        neighbor.size
    }
}
