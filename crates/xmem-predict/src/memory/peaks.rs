//! The peaks of allocated and of reserved memory, with the live blocks and the free memory at the first.

use std::ops::Range;
use xmem_simulator::{
    BlockUse, Curve, Device, DeviceConfig, Fragmentation, Framework, FrameworkAllocator, Peak,
    Replay, ReplayDriver, RequestIndex, SegmentState,
};
use xmem_types::{BlockId, Bytes, Workload};

/// A block at the allocated peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) block: BlockId,
    pub(super) bytes: Bytes,
    pub(super) requested: Bytes,
}

/// Free memory inside segments at the allocated peak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FreeMemory {
    pub(super) unused: Bytes,
    pub(super) releasable: Bytes,
    pub(super) pieces: u64,
    pub(super) largest: Bytes,
}

/// The peaks within a range of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Peaks {
    pub(super) allocated: Peak,
    pub(super) reserved: Peak,
    pub(super) live: Vec<Live>,
    pub(super) free: FreeMemory,
}

impl From<Fragmentation> for FreeMemory {
    fn from(gaps: Fragmentation) -> Self {
        Self {
            unused: gaps.free,
            releasable: gaps.releasable,
            pieces: gaps.free_blocks as u64,
            largest: gaps.largest_free,
        }
    }
}

impl Peaks {
    /// The peaks over a whole replay.
    pub(super) fn of_replay(replay: &Replay) -> Self {
        let live = replay.live_at_peak.iter();
        Self {
            allocated: replay.peak,
            reserved: replay.reserved_peak,
            live: live
                .map(|b| Live { block: b.block, bytes: b.size, requested: b.requested })
                .collect(),
            free: FreeMemory::from(replay.fragmentation),
        }
    }

    /// For an allocator without a layout, as CUDA's own pools: all that is free is one piece.
    pub(super) fn of_a_pool(self) -> Self {
        let unused = self.allocated.reserved - self.allocated.allocated;
        let pieces = u64::from(unused > Bytes::ZERO);
        Self { free: FreeMemory { unused, releasable: unused, pieces, largest: unused }, ..self }
    }

    /// The peaks among the requests `within`, which a replay's own peaks may lie before. The
    /// requests are run again, to see what was there.
    pub(super) fn within<F: Framework>(
        within: &Range<usize>,
        curve: &Curve,
        work: Workload<'_>,
        allocator: &F,
        device: &DeviceConfig,
    ) -> Self {
        let points = || curve.iter().skip(within.start).take(within.len());
        let first_highest = |value: fn(&Peak) -> Bytes| {
            points().reduce(|best, p| if value(&p) > value(&best) { p } else { best })
        };
        let allocated = first_highest(|p| p.allocated).unwrap_or_default();
        let reserved = first_highest(|p| p.reserved).unwrap_or_default();
        let mut driver = ReplayDriver::new(allocator.over(Device::new(device), ()), work);
        let mut peaks = Self { allocated, reserved, ..Self::default() };
        for (at, request) in work.requests.iter().enumerate().take(within.end) {
            driver.serve_lifting_limits(RequestIndex(at), request);
            if at == allocated.request.0 {
                peaks.live = live(&driver);
                peaks.free = free_memory(&driver.allocator().state());
            }
        }
        peaks
    }
}

fn live<A: FrameworkAllocator>(driver: &ReplayDriver<'_, A>) -> Vec<Live> {
    let live = driver.live().map(|(block, handle)| {
        let view = driver.allocator().block(handle);
        Live { block, bytes: view.size, requested: view.requested }
    });
    live.collect()
}

fn free_memory(segments: &[SegmentState]) -> FreeMemory {
    let mut sum = FreeMemory::default();
    for segment in segments {
        let in_use = segment.blocks.iter().any(|b| b.used != BlockUse::Free);
        for block in segment.blocks.iter().filter(|b| b.used == BlockUse::Free) {
            sum.unused += block.size;
            sum.pieces += 1;
            sum.largest = sum.largest.max(block.size);
            if !in_use {
                sum.releasable += block.size;
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xmem_simulator::{AllocatorChoice, AllocatorConfig, BfcConfig, MallocAsync};
    use xmem_types::{Request, RequestKind, StreamId};

    /// Requests out of steps: a positive step allocates that many 64 KiB, zero frees the oldest.
    fn requests(steps: &[u64]) -> Vec<Request> {
        let mut live = std::collections::VecDeque::new();
        let mut next = 0;
        let mut list = Vec::new();
        for &step in steps {
            if step == 0 {
                if let Some(block) = live.pop_front() {
                    list.push(Request { block, kind: RequestKind::Free });
                }
                continue;
            }
            let block = BlockId(next);
            let kind = RequestKind::Alloc { size: Bytes(step << 16), stream: StreamId(0) };
            list.push(Request { block, kind });
            live.push_back(block);
            next += 1;
        }
        list
    }

    fn allocators() -> impl Strategy<Value = AllocatorChoice> {
        let expandable =
            AllocatorConfig { expandable_segments: true, ..AllocatorConfig::default() };
        let growth = BfcConfig { allow_growth: true, ..BfcConfig::default() };
        prop::sample::select(vec![
            AllocatorChoice::default(),
            AllocatorChoice::Caching(expandable),
            AllocatorChoice::Uncached,
            AllocatorChoice::MallocAsync(MallocAsync::default()),
            AllocatorChoice::Bfc(BfcConfig::default()),
            AllocatorChoice::Bfc(growth),
        ])
    }

    #[test]
    fn a_block_may_have_a_number_beyond_that_of_the_requests() {
        let kind = RequestKind::Alloc { size: Bytes::mib(4), stream: StreamId(0) };
        let requests = [Request { block: BlockId(294), kind }];
        let (allocator, device) = (AllocatorConfig::default(), DeviceConfig::default());
        let replay = xmem_simulator::replay(&requests, &allocator, &device);
        let work = Workload::from(&requests[..]);
        let found = Peaks::within(&(0..1), &replay.curve, work, &allocator, &device);
        let live: Vec<_> = found.live.iter().map(|l| (l.block, l.requested)).collect();
        assert_eq!(live, [(BlockId(294), Bytes::mib(4))]);
    }

    proptest! {
        /// Looking for the peaks among all requests finds those of the replay, whatever the
        /// allocator, and whether or not the device is large enough.
        #[test]
        fn the_whole_range_has_the_peaks_of_the_replay(
            steps in prop::collection::vec(prop_oneof![Just(0_u64), 1_u64..400], 0..120),
            capacity in prop_oneof![Just(None), (20_u64..400).prop_map(|n| Some(Bytes::mib(n)))],
            allocator in allocators(),
        ) {
            let requests = requests(&steps);
            let device = DeviceConfig { capacity, ..DeviceConfig::default() };
            let replay = xmem_simulator::replay(&requests, &allocator, &device);
            let all = 0..requests.len();
            let work = Workload::from(&requests);
            let mut found = Peaks::within(&all, &replay.curve, work, &allocator, &device);
            let mut expected = Peaks::of_replay(&replay);
            if matches!(allocator, AllocatorChoice::MallocAsync(_)) {
                (found, expected) = (found.of_a_pool(), expected.of_a_pool());
            }
            found.live.sort_by_key(|b| b.block);
            expected.live.sort_by_key(|b| b.block);
            prop_assert_eq!(found, expected);
        }
    }
}
