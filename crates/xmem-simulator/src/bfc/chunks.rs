//! Chunks: what regions are divided into, linked to their neighbors, and the free ones in
//! best-fit order.

use crate::allocator::{Counter, RequestIndex, SegmentId};
use std::collections::BTreeMap;
use xmem_types::StreamId;

/// No chunk: the end of a region.
const NONE: u32 = u32::MAX;

/// TensorFlow's `Chunk`: a part of a region, in use or free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) addr: u64,
    pub(super) size: u64,
    pub(super) region: SegmentId,
    /// Who has it; `None` while it is free.
    pub(super) user: Option<User>,
    prev: u32,
    next: u32,
}

/// The request that a chunk serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    /// The size that the program requested.
    pub(super) requested: u64,
    pub(super) stream: StreamId,
    pub(super) born: RequestIndex,
}

/// All chunks of an allocator. Neighboring free chunks are always merged.
///
/// TensorFlow keeps free chunks in 21 bins, one for each power of two from 256 bytes up, each
/// ordered by size and address, and searches them from the bin of the wanted size up
/// (`FindChunkPtr`). Every chunk of a bin is smaller than every chunk of the next, so that the
/// first fit in bins is the first fit in one list ordered by size and address, which this is.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    slots: Vec<Chunk>,
    /// Slots without a chunk.
    vacant: Vec<u32>,
    /// The free ones: size and address to slot.
    free: BTreeMap<(u64, u64), u32>,
    /// The number of free chunks in regions that are partly in use, and their bytes.
    pub(super) split_free: Counter,
    pub(super) split_free_bytes: Counter,
}

impl Chunks {
    pub(super) fn get(&self, slot: u32) -> &Chunk {
        &self.slots[slot as usize]
    }

    /// A region that is one free chunk.
    pub(super) fn add(&mut self, addr: u64, size: u64, region: SegmentId) -> u32 {
        let chunk = Chunk { addr, size, region, user: None, prev: NONE, next: NONE };
        let slot = self.insert(chunk);
        self.set_free(slot);
        slot
    }

    /// More memory behind the region that begins with the chunk `first`: free, and part of the
    /// region's last chunk if that is free too.
    pub(super) fn append(&mut self, first: u32, size: u64) {
        let mut last = first;
        while self.get(last).next != NONE {
            last = self.get(last).next;
        }
        let end = *self.get(last);
        if end.user.is_none() {
            self.unset_free(last);
            self.slots[last as usize].size += size;
            self.set_free(last);
        } else {
            let addr = end.addr + end.size;
            let more = self.insert(Chunk { addr, size, user: None, prev: last, ..end });
            self.slots[last as usize].next = more;
            self.set_free(more);
        }
    }

    /// Returns whether the region that begins with the chunk `first` has no chunk in use.
    pub(super) fn is_unused(&self, first: u32) -> bool {
        let chunk = self.get(first);
        chunk.user.is_none() && chunk.next == NONE
    }

    /// Forgets a region without a chunk in use.
    pub(super) fn remove(&mut self, first: u32) {
        debug_assert!(self.is_unused(first), "a region in use stays");
        self.unset_free(first);
        self.vacant.push(first);
    }

    /// Takes the smallest free chunk of at least `size`, the lowest address among equals.
    pub(super) fn take_fit(&mut self, size: u64) -> Option<u32> {
        let (_, &slot) = self.free.range((size, 0)..).next()?;
        self.unset_free(slot);
        Some(slot)
    }

    /// `SplitChunk`: shortens a chunk that was taken to `size`; the rest becomes free.
    pub(super) fn split(&mut self, slot: u32, size: u64) {
        let front = *self.get(slot);
        let rest = self.insert(Chunk {
            addr: front.addr + size,
            size: front.size - size,
            user: None,
            prev: slot,
            ..front
        });
        if front.next != NONE {
            self.slots[front.next as usize].prev = rest;
        }
        let front = &mut self.slots[slot as usize];
        front.size = size;
        front.next = rest;
        self.set_free(rest);
    }

    /// Gives a chunk that was taken to `user`.
    pub(super) fn hand_out(&mut self, slot: u32, user: User) {
        self.slots[slot as usize].user = Some(user);
    }

    /// `TryToCoalesce`: takes a chunk back and merges it with the free chunks beside it.
    pub(super) fn give_back(&mut self, slot: u32) {
        let Chunk { prev, next, .. } = *self.get(slot);
        self.slots[slot as usize].user = None;
        if next != NONE && self.get(next).user.is_none() {
            self.unset_free(next);
            self.merge(slot, next);
        }
        if prev != NONE && self.get(prev).user.is_none() {
            self.unset_free(prev);
            self.merge(prev, slot);
            self.set_free(prev);
        } else {
            self.set_free(slot);
        }
    }

    pub(super) fn clear_peaks(&mut self) {
        self.split_free.reset_peak();
        self.split_free_bytes.reset_peak();
    }

    /// The size of the largest free chunk.
    pub(super) fn largest_free(&self) -> u64 {
        self.free.last_key_value().map_or(0, |(&(size, _), _)| size)
    }

    /// The chunks of the region that begins with the chunk `first`, by address.
    pub(super) fn of_region(&self, first: u32) -> impl Iterator<Item = &Chunk> {
        let chunk = |slot: u32| self.slots.get(slot as usize);
        std::iter::successors(chunk(first), move |before| chunk(before.next))
    }

    /// `Merge`: the second chunk becomes part of the first. Neither is in the list of free ones.
    fn merge(&mut self, first: u32, second: u32) {
        let Chunk { size, next, .. } = *self.get(second);
        let chunk = &mut self.slots[first as usize];
        chunk.size += size;
        chunk.next = next;
        if next != NONE {
            self.slots[next as usize].prev = first;
        }
        self.vacant.push(second);
    }

    fn insert(&mut self, chunk: Chunk) -> u32 {
        if let Some(slot) = self.vacant.pop() {
            self.slots[slot as usize] = chunk;
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 chunks at a time");
        self.slots.push(chunk);
        slot
    }

    fn set_free(&mut self, slot: u32) {
        let chunk = *self.get(slot);
        self.free.insert((chunk.size, chunk.addr), slot);
        if chunk.prev != NONE || chunk.next != NONE {
            self.split_free.add(1);
            self.split_free_bytes.add(chunk.size);
        }
    }

    fn unset_free(&mut self, slot: u32) {
        let chunk = *self.get(slot);
        self.free.remove(&(chunk.size, chunk.addr));
        if chunk.prev != NONE || chunk.next != NONE {
            self.split_free.sub(1);
            self.split_free_bytes.sub(chunk.size);
        }
    }
}
