//! What an allocator does with the blocks that are planned, alone and from the beginning.

use super::blocks::PlanBlocks;
use super::fragmentation::{FragmentationSeries, PeakRequest, sampled};
use std::collections::BTreeMap;
use xmem_planner::{FreePieces, Moment};
use xmem_predict::AllocatorKind;
use xmem_simulator::{
    AllocatorChoice, AllocatorConfig, BfcConfig, BlockHandle, BlockUse, Device, DeviceConfig,
    Framework, FrameworkAllocator, ReplayDriver, RequestIndex, SegmentState, Served,
};
use xmem_types::{BlockId, Bytes, Request, RequestKind, Workload};

/// What an allocator does with the blocks.
#[derive(Clone, Debug)]
pub struct AllocatorRun {
    /// The allocator.
    pub kind: AllocatorKind,
    /// The most bytes of blocks handed out.
    pub allocated: Bytes,
    /// The most bytes of segments.
    pub reserved: Bytes,
    /// Blocks that it does not serve, as they are larger than the memory of any device.
    pub refused: usize,
    /// The place of each block, by its id; none if it has no bytes, or is not served.
    pub placements: Vec<Option<Placement>>,
    /// The segments, by number.
    pub segments: Vec<SegmentSpan>,
    /// The free memory in segments over time.
    pub fragmentation: FragmentationSeries,
}

/// The place of a block in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The number of the segment.
    pub segment: usize,
    /// Bytes from the start of the segment.
    pub offset: Bytes,
}

/// A segment over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSpan {
    /// Its size; of an expandable segment, the end of the highest block in it.
    pub size: Bytes,
    /// The tick of the request for which it was obtained.
    pub start: u32,
    /// The tick of the request during which it was released; none if it was not.
    pub end: Option<u32>,
}

impl AllocatorRun {
    /// The allocator of the job, or PyTorch's with its defaults.
    #[must_use]
    pub fn of_job(blocks: &PlanBlocks) -> Self {
        let kind = blocks.setup.as_ref().map_or(AllocatorKind::Native, |setup| setup.kind);
        Self::new(blocks, kind, &blocks.allocator())
    }

    /// The allocator of the job, with `expandable_segments:True`; none if it is not PyTorch's caching allocator, or has them
    /// already.
    #[must_use]
    pub fn of_expandable_segments(blocks: &PlanBlocks) -> Option<Self> {
        match blocks.allocator() {
            AllocatorChoice::Caching(config) if !config.expandable_segments => {
                let config = AllocatorConfig { expandable_segments: true, ..config };
                let choice = AllocatorChoice::Caching(config);
                Some(Self::new(blocks, AllocatorKind::Native, &choice))
            }
            _ => None,
        }
    }

    /// TensorFlow's allocator with `allow_growth`.
    #[must_use]
    pub fn of_tensorflow(blocks: &PlanBlocks) -> Self {
        let config = BfcConfig { allow_growth: true, ..BfcConfig::default() };
        Self::new(blocks, AllocatorKind::BfcGrowth, &AllocatorChoice::Bfc(config))
    }

    fn new(blocks: &PlanBlocks, kind: AllocatorKind, choice: &AllocatorChoice) -> Self {
        let events = blocks.events();
        let request = |&(_, id, kind)| Request { block: BlockId(id as u32), kind };
        let requests: Vec<Request> = events.iter().map(request).collect();
        let order = blocks.setup.as_ref().map(|setup| setup.address_order).unwrap_or_default();
        let device = DeviceConfig { address_order: order, ..DeviceConfig::default() };
        let allocator = || {
            let mut allocator = choice.over(Device::new(&device), ());
            allocator.lift_limit();
            allocator
        };
        let last_raise = last_raise(allocator(), &requests);
        let mut driver = ReplayDriver::new(allocator(), Workload::from(&requests));
        let mut run = Recorder::new(blocks.list.len());
        let sampled = sampled(&events);
        for (at, (&(tick, id, _), request)) in events.iter().zip(&requests).enumerate() {
            let before = driver.allocator().reserved();
            let served = driver.serve_lifting_limits(RequestIndex(at), request);
            if let Served::Allocated(handle) = served {
                run.placed(id, driver.allocator(), handle);
            }
            run.allocated = run.allocated.max(driver.allocator().allocated());
            run.reserved = run.reserved.max(driver.allocator().reserved());
            if last_raise == Some(at) {
                run.raised((before, request.kind), tick, driver.allocator(), id);
            }
            if sampled.contains(&at) {
                run.series.moments.push(moment(tick, driver.allocator()));
            }
        }
        let ticks: Vec<u32> = events.iter().map(|event| event.0).collect();
        let is_refused =
            |id: &usize| run.placements[*id].is_none() && blocks.facts[*id].requested.get() > 0;
        let refused = (0..blocks.list.len()).filter(is_refused).count();
        run.finish((kind, refused), driver.allocator(), &ticks)
    }
}

/// The last request that raises the most memory reserved so far.
fn last_raise(allocator: impl FrameworkAllocator, requests: &[Request]) -> Option<usize> {
    let mut driver = ReplayDriver::new(allocator, Workload::from(requests));
    let (mut most, mut last) = (Bytes::ZERO, None);
    for (at, request) in requests.iter().enumerate() {
        driver.serve_lifting_limits(RequestIndex(at), request);
        let reserved = driver.allocator().reserved();
        if reserved > most {
            (most, last) = (reserved, Some(at));
        }
    }
    last
}

struct Recorder {
    allocated: Bytes,
    reserved: Bytes,
    /// The segment and the address of each block, and its size.
    placements: Vec<Option<(usize, u64, Bytes)>>,
    series: FragmentationSeries,
}

impl Recorder {
    fn new(blocks: usize) -> Self {
        let placements = vec![None; blocks];
        let series = FragmentationSeries::default();
        Self { allocated: Bytes::ZERO, reserved: Bytes::ZERO, placements, series }
    }

    fn placed(&mut self, id: usize, allocator: &impl FrameworkAllocator, handle: BlockHandle) {
        let block = allocator.block(handle);
        self.placements[id] = Some((block.segment.index(), block.addr.0, block.size));
    }

    /// Takes note of a request that raises the peak; `before` it there was so much reserved.
    fn raised(
        &mut self,
        (before, kind): (Bytes, RequestKind),
        tick: u32,
        allocator: &impl FrameworkAllocator,
        id: usize,
    ) {
        let RequestKind::Alloc { size, .. } = kind else { return };
        // What was free before: the segment that was obtained for the request is left out.
        let obtained = allocator.reserved().saturating_sub(before);
        let own = self.placements[id].map(|(segment, ..)| segment);
        let segments = allocator.segments();
        let pool = own.map(|own| segments[own].pool);
        let old = |segment: &SegmentState| {
            Some(segment.pool) == pool
                && (Some(segment.segment.index()) != own || segment.size > obtained)
        };
        let free = free(&allocator.state().into_iter().filter(old).collect::<Vec<_>>());
        self.series.at_peak = Some(PeakRequest { tick, block: id, size, free });
    }

    fn finish(
        self,
        (kind, refused): (AllocatorKind, usize),
        allocator: &impl FrameworkAllocator,
        ticks: &[u32],
    ) -> AllocatorRun {
        let tick = |request: RequestIndex| ticks.get(request.0).copied().unwrap_or_default();
        let mut ends: BTreeMap<usize, Bytes> = BTreeMap::new();
        let segments = allocator.segments();
        let offset =
            |segment: usize, addr: u64| Bytes(addr.saturating_sub(segments[segment].addr.0));
        for &(segment, addr, size) in self.placements.iter().flatten() {
            let end = ends.entry(segment).or_default();
            *end = (*end).max(offset(segment, addr) + size);
        }
        let placement = |&(segment, addr, _): &(usize, u64, Bytes)| Placement {
            segment,
            offset: offset(segment, addr),
        };
        let span = |(number, segment): (usize, &xmem_simulator::Segment)| SegmentSpan {
            size: if segment.expandable {
                ends.get(&number).copied().unwrap_or_default()
            } else {
                segment.size
            },
            start: tick(segment.born),
            end: segment.died.map(tick),
        };
        AllocatorRun {
            kind,
            refused,
            allocated: self.allocated,
            reserved: self.reserved,
            placements: self.placements.iter().map(|place| place.as_ref().map(placement)).collect(),
            segments: segments.iter().enumerate().map(span).collect(),
            fragmentation: self.series,
        }
    }
}

fn moment(tick: u32, allocator: &impl FrameworkAllocator) -> Moment {
    let (load, top) = (allocator.allocated(), allocator.reserved());
    Moment { tick, load, top, free: free(&allocator.state()) }
}

/// The free blocks in segments.
fn free(segments: &[SegmentState]) -> FreePieces {
    let blocks = segments.iter().flat_map(|segment| &segment.blocks);
    let free = blocks.filter(|block| block.used == BlockUse::Free);
    FreePieces::new(free.map(|block| block.size).collect())
}
