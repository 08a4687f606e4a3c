//! Blocks in slots that are reused, linked to their neighbours within a segment.

use super::{PoolKind, RequestIndex, SegmentId};
use crate::allocator::pool::PoolId;

/// No block: the end of a segment.
pub(super) const NONE: u32 = u32::MAX;

/// PyTorch's `Block`: a part of a segment, handed out or free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) addr: u64,
    pub(super) size: u64,
    /// What the program asked for; stale while the block is free.
    pub(super) requested: u64,
    pub(super) born: RequestIndex,
    pub(super) prev: u32,
    pub(super) next: u32,
    pub(super) segment: SegmentId,
    pub(super) pool: PoolId,
    pub(super) kind: PoolKind,
    pub(super) allocated: bool,
}

impl Block {
    /// `Block::is_split`.
    pub(super) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }
}

/// All blocks of an allocator.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena {
    blocks: Vec<Block>,
    vacant: Vec<u32>,
}

impl Arena {
    pub(super) fn insert(&mut self, block: Block) -> u32 {
        if let Some(slot) = self.vacant.pop() {
            self.blocks[slot as usize] = block;
            return slot;
        }
        let slot = u32::try_from(self.blocks.len()).expect("fewer than 2^32 blocks at a time");
        self.blocks.push(block);
        slot
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
