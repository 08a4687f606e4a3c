//! The allocator's state as PyTorch's `snapshot` shows it.

use super::CachingAllocator;
use super::arena::{Block, Use};
use crate::allocator::{BlockState, BlockUse, Observer, SegmentState};
use xmem_types::{Addr, Bytes};

impl<O: Observer> CachingAllocator<O> {
    /// Every segment by address; of expandable ones each contiguous mapped range.
    pub(super) fn segment_states(&self) -> Vec<SegmentState> {
        let mut blocks: Vec<&Block> =
            self.arena.iter().filter(|block| block.used != Use::Unmapped).collect();
        blocks.sort_by_key(|block| block.addr);
        let mut list: Vec<SegmentState> = Vec::new();
        for block in blocks {
            let state = BlockState {
                addr: Addr(block.addr),
                size: Bytes(block.size),
                requested: Bytes(block.requested),
                used: match block.used {
                    Use::Allocated => BlockUse::Allocated,
                    Use::Pending => BlockUse::PendingFree,
                    Use::Free | Use::Unmapped => BlockUse::Free,
                },
            };
            match list.last_mut() {
                Some(last) if last.segment == block.segment && last.end().0 == block.addr => {
                    last.size += state.size;
                    last.blocks.push(state);
                }
                _ => {
                    let segment = &self.segments[block.segment.index()];
                    list.push(SegmentState {
                        segment: block.segment,
                        addr: Addr(block.addr),
                        size: state.size,
                        stream: segment.stream,
                        pool: segment.pool,
                        private_pool: segment.private_pool,
                        expandable: segment.expandable,
                        blocks: vec![state],
                    });
                }
            }
        }
        list
    }
}
