//! The use of the segments at one moment.

use super::peaks::LiveBlock;
use crate::allocator::{
    BlockUse, Mapping, PoolKind, RequestIndex, Segment, SegmentId, SegmentState,
};
use xmem_types::{Addr, Bytes, StreamId};

/// A segment at one moment, with the blocks handed out from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentAtPeak {
    /// Its number, in order of creation.
    pub segment: SegmentId,
    /// The start address.
    pub addr: Addr,
    /// Its size.
    pub size: Bytes,
    /// The stream it serves.
    pub stream: StreamId,
    /// The pool it belongs to.
    pub pool: PoolKind,
    /// Bytes of the blocks handed out from it.
    pub allocated: Bytes,
    /// The number of blocks handed out from it.
    pub blocks: usize,
    /// The number of free blocks in it.
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
    /// The number of free blocks.
    pub free_blocks: usize,
    /// The largest free block: a request above it needs a new segment.
    pub largest_free: Bytes,
    /// Bytes of segments without any block handed out, which can go back to the device.
    pub releasable: Bytes,
    /// The number of segments.
    pub segments: usize,
}

/// The free memory inside segments, by an allocator's state.
pub(super) fn of_state(segments: &[SegmentState]) -> Fragmentation {
    let mut sum = Fragmentation { segments: segments.len(), ..Fragmentation::default() };
    for segment in segments {
        let in_use = segment.blocks.iter().any(|block| block.used != BlockUse::Free);
        for block in &segment.blocks {
            sum.reserved += block.size;
            if block.used != BlockUse::Free {
                sum.allocated += block.size;
                continue;
            }
            sum.free += block.size;
            sum.free_blocks += 1;
            sum.largest_free = sum.largest_free.max(block.size);
            if !in_use {
                sum.releasable += block.size;
            }
        }
    }
    sum
}

/// All segments and mappings that ever were.
pub(super) struct History<'a> {
    pub(super) segments: &'a [Segment],
    pub(super) mappings: &'a [Mapping],
}

impl History<'_> {
    /// The segments that exist after request `at`, by address; of expandable ones, each contiguous
    /// mapped range. `live` are the blocks handed out then.
    pub(super) fn segments_at(&self, at: RequestIndex, live: &[LiveBlock]) -> Vec<SegmentAtPeak> {
        let mut blocks: Vec<_> = live.iter().map(|b| (b.addr, b.size)).collect();
        blocks.sort_unstable();
        let mut blocks = blocks.into_iter().peekable();
        let mut found = self.ranges_at(at);
        for range in &mut found {
            let end = range.addr.0 + range.size.get();
            let mut covered = range.addr.0;
            while let Some((addr, size)) = blocks.next_if(|(addr, _)| addr.0 < end) {
                range.gap(addr.0 - covered);
                range.allocated += size;
                range.blocks += 1;
                covered = addr.0 + size.get();
            }
            range.gap(end - covered);
        }
        found
    }

    fn ranges_at(&self, at: RequestIndex) -> Vec<SegmentAtPeak> {
        let is_there = |born: RequestIndex, died: Option<RequestIndex>| {
            born <= at && died.is_none_or(|died| died > at)
        };
        let whole = self
            .segments
            .iter()
            .enumerate()
            .filter(|(_, s)| !s.expandable && is_there(s.born, s.died))
            .map(|(row, s)| (SegmentId(row as u32), s.addr, s.size));
        let mapped = self
            .mappings
            .iter()
            .filter(|m| is_there(m.born, m.died))
            .map(|m| (m.segment, m.addr, m.size));
        let mut ranges: Vec<_> = whole.chain(mapped).collect();
        ranges.sort_unstable_by_key(|&(_, addr, _)| addr);

        let mut found: Vec<SegmentAtPeak> = Vec::new();
        for (id, addr, size) in ranges {
            if let Some(last) = found.last_mut()
                && last.segment == id
                && last.addr.0 + last.size.get() == addr.0
            {
                last.size += size;
                continue;
            }
            let segment = &self.segments[id.index()];
            found.push(SegmentAtPeak {
                segment: id,
                addr,
                size,
                stream: segment.stream,
                pool: segment.pool,
                allocated: Bytes::ZERO,
                blocks: 0,
                free_blocks: 0,
                largest_free: Bytes::ZERO,
            });
        }
        found
    }
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
