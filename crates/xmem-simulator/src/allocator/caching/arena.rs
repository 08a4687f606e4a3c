//! Blocks in slots that are reused, linked to their neighbors within a segment.

use super::pool::SetId;
use crate::allocator::{PoolKind, RequestIndex, SegmentId};

/// No block: the end of a segment.
pub(super) const NONE: u32 = u32::MAX;

/// The use of a block's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// In the free set of its pool.
    Free,
    /// Handed out.
    Allocated,
    /// Given back, while other streams may still use it.
    Pending,
    /// Address space of an expandable segment without memory behind it.
    Unmapped,
}

/// PyTorch's `Block`: a part of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) addr: u64,
    pub(super) size: u64,
    /// The size that the program requested; stale while the block is free.
    pub(super) requested: u64,
    pub(super) born: RequestIndex,
    /// `gc_count_base`: how many searches its pool had seen when it became free.
    pub(super) free_since: u64,
    /// The number of blocks that were made before it.
    pub(super) serial: u64,
    pub(super) prev: u32,
    pub(super) next: u32,
    pub(super) segment: SegmentId,
    pub(super) set: SetId,
    pub(super) kind: PoolKind,
    pub(super) used: Use,
    /// True if it lies in an expandable segment.
    pub(super) expandable: bool,
    /// True if other streams were recorded as its users.
    pub(super) shared: bool,
}

impl Block {
    /// `Block::is_split`.
    pub(super) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }

    pub(super) fn end(&self) -> u64 {
        self.addr + self.size
    }
}

/// All blocks of an allocator.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena {
    blocks: Vec<Block>,
    vacant: Vec<u32>,
    made: u64,
}

impl Arena {
    /// Adds a block, which gets a serial number of its own.
    pub(super) fn insert(&mut self, block: Block) -> u32 {
        let block = Block { serial: self.made, ..block };
        self.made += 1;
        if let Some(slot) = self.vacant.pop() {
            self.blocks[slot as usize] = block;
            return slot;
        }
        let slot = u32::try_from(self.blocks.len()).expect("fewer than 2^32 blocks at a time");
        self.blocks.push(block);
        slot
    }

    /// Inserts a block behind `slot`, which must end where it starts.
    pub(super) fn insert_behind(&mut self, slot: u32, block: Block) -> u32 {
        let next = self.get(slot).next;
        let new = self.insert(Block { prev: slot, next, ..block });
        self.get_mut(slot).next = new;
        if next != NONE {
            self.get_mut(next).prev = new;
        }
        new
    }

    /// Exchanges the serial numbers of two blocks: where PyTorch makes a new block for the front of
    /// an old one, here the front stays in its slot.
    pub(super) fn exchange_serials(&mut self, front: u32, rest: u32) {
        let older = self.get(front).serial;
        let newer = std::mem::replace(&mut self.get_mut(rest).serial, older);
        self.get_mut(front).serial = newer;
    }

    /// Lets `slot` swallow its neighbor `other`, whose slot becomes vacant.
    pub(super) fn swallow(&mut self, slot: u32, other: u32) {
        let neighbor = *self.get(other);
        self.remove(other);
        let block = self.get_mut(slot);
        block.size += neighbor.size;
        let (outer, before) = if neighbor.addr < block.addr {
            block.addr = neighbor.addr;
            block.prev = neighbor.prev;
            (neighbor.prev, true)
        } else {
            block.next = neighbor.next;
            (neighbor.next, false)
        };
        if outer != NONE {
            let outer = self.get_mut(outer);
            if before {
                outer.next = slot;
            } else {
                outer.prev = slot;
            }
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.blocks[slot as usize].size = 0;
        self.vacant.push(slot);
    }

    /// The blocks that are there, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.size > 0)
    }

    pub(super) fn get(&self, slot: u32) -> &Block {
        &self.blocks[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Block {
        &mut self.blocks[slot as usize]
    }
}
