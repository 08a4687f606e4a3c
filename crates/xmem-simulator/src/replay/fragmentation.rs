//! How well the segments are used at one moment.

use super::peaks::LiveBlock;
use crate::allocator::{PoolKind, RequestIndex, Segment, SegmentId};
use xmem_types::{Addr, Bytes, StreamId};

/// A segment at one moment, with the blocks handed out from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentAtPeak {
    /// Its number, in order of creation.
    pub segment: SegmentId,
    /// Where it starts.
    pub addr: Addr,
    /// Its size.
    pub size: Bytes,
    /// The stream it serves.
    pub stream: StreamId,
    /// The pool it belongs to.
    pub pool: PoolKind,
    /// Bytes of the blocks handed out from it.
    pub allocated: Bytes,
    /// How many blocks are handed out from it.
    pub blocks: usize,
    /// How many free blocks lie in it.
    pub free_blocks: usize,
    /// The largest of them.
    pub largest_free: Bytes,
}

impl SegmentAtPeak {
    /// Bytes of it that are not handed out.
    #[must_use]
    pub fn free(&self) -> Bytes {
        self.size.saturating_sub(self.allocated)
    }
}

/// The free memory inside segments at one moment: reserved, but not allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Bytes of all segments.
    pub reserved: Bytes,
    /// Bytes of all blocks handed out.
    pub allocated: Bytes,
    /// Bytes inside segments that are not handed out.
    pub free: Bytes,
    /// How many free blocks they are.
    pub free_blocks: usize,
    /// The largest free block: a request above it needs a new segment.
    pub largest_free: Bytes,
    /// Bytes of segments without any block handed out, which can go back to the device.
    pub releasable: Bytes,
    /// How many segments there are.
    pub segments: usize,
}

/// The segments that exist after request `at`, by address. `live` are the blocks handed out then.
pub(super) fn segments_at(
    at: RequestIndex,
    segments: &[Segment],
    live: &[LiveBlock],
) -> Vec<SegmentAtPeak> {
    let mut blocks: Vec<_> = live.iter().map(|b| (b.addr, b.size)).collect();
    blocks.sort_unstable();
    let mut found: Vec<_> = segments
        .iter()
        .enumerate()
        .filter(|(_, s)| s.born <= at && s.died.is_none_or(|died| died > at))
        .map(|(row, s)| (SegmentId(row as u32), *s))
        .collect();
    found.sort_unstable_by_key(|(_, s)| s.addr);

    let mut blocks = blocks.into_iter().peekable();
    found
        .into_iter()
        .map(|(segment, s)| {
            let mut state = SegmentAtPeak {
                segment,
                addr: s.addr,
                size: s.size,
                stream: s.stream,
                pool: s.pool,
                allocated: Bytes::ZERO,
                blocks: 0,
                free_blocks: 0,
                largest_free: Bytes::ZERO,
            };
            let end = s.addr.0 + s.size.get();
            let mut covered = s.addr.0;
            while let Some((addr, size)) = blocks.next_if(|(addr, _)| addr.0 < end) {
                state.gap(addr.0 - covered);
                state.allocated += size;
                state.blocks += 1;
                covered = addr.0 + size.get();
            }
            state.gap(end - covered);
            state
        })
        .collect()
}

impl SegmentAtPeak {
    /// Counts the space between two blocks, which is one free block unless it is empty.
    fn gap(&mut self, size: u64) {
        if size > 0 {
            self.free_blocks += 1;
            self.largest_free = self.largest_free.max(Bytes(size));
        }
    }
}

/// The sums over all segments of one moment.
pub(super) fn measure(segments: &[SegmentAtPeak]) -> Fragmentation {
    let mut sum = Fragmentation { segments: segments.len(), ..Fragmentation::default() };
    for s in segments {
        sum.reserved += s.size;
        sum.allocated += s.allocated;
        sum.free += s.free();
        sum.free_blocks += s.free_blocks;
        sum.largest_free = sum.largest_free.max(s.largest_free);
        if s.blocks == 0 {
            sum.releasable += s.size;
        }
    }
    sum
}
