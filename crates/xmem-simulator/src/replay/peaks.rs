//! The blocks alive at a peak, found without a copy of everything at each new peak.

use super::Peak;
use super::fragmentation::{History, SegmentAtPeak};
use crate::allocator::{BlockView, RequestIndex, SegmentId};
use xmem_types::{Addr, BlockId, Bytes, StreamId};

/// A block that was handed out at a peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveBlock {
    /// The caller's number.
    pub block: BlockId,
    /// Bytes that the program requested.
    pub requested: Bytes,
    /// Bytes that it occupies.
    pub size: Bytes,
    /// The address.
    pub addr: Addr,
    /// The segment it lies in.
    pub segment: SegmentId,
    /// The stream it was requested on.
    pub stream: StreamId,
    /// The request that it answers.
    pub born: RequestIndex,
}

impl LiveBlock {
    pub(super) fn new(block: BlockId, view: &BlockView) -> Self {
        Self {
            block,
            requested: view.requested,
            size: view.size,
            addr: view.addr,
            segment: view.segment,
            stream: view.stream,
            born: view.born,
        }
    }
}

/// Follows one figure to its peak.
///
/// The blocks alive at the peak are those of them that are still alive at the end, and those freed
/// since: only the latter are written down, and forgotten at each new peak. So the cost is
/// constant per request, and the memory that of the blocks alive at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct PeakJournal {
    highest: Bytes,
    peak: Peak,
    freed: Vec<LiveBlock>,
}

/// A peak with all that was there.
pub(super) struct PeakState {
    pub(super) peak: Peak,
    pub(super) blocks: Vec<LiveBlock>,
    pub(super) segments: Vec<SegmentAtPeak>,
}

impl PeakJournal {
    /// The figure has this value now.
    pub(super) fn reached(&mut self, value: Bytes, now: Peak) {
        if value > self.highest {
            self.highest = value;
            self.peak = now;
            self.freed.clear();
        }
    }

    /// A block is about to be freed.
    pub(super) fn freed(&mut self, block: &LiveBlock) {
        if block.born <= self.peak.request {
            self.freed.push(*block);
        }
    }

    /// The peak, from the blocks alive at the end and all segments that ever were.
    pub(super) fn finish(self, live: &[LiveBlock], history: &History<'_>) -> PeakState {
        let Self { highest, peak, freed: mut blocks } = self;
        if highest == Bytes::ZERO {
            return PeakState { peak, blocks: Vec::new(), segments: Vec::new() };
        }
        let still = || live.iter().filter(|block| block.born <= peak.request);
        blocks.reserve_exact(still().count());
        blocks.extend(still());
        blocks.sort_unstable_by_key(|block| block.born);
        let segments = history.segments_at(peak.request, &blocks);
        PeakState { peak, blocks, segments }
    }
}
