//! Replaying a job's requests, and everything that is known about it afterwards.

mod attempts;
mod capacity;
mod curve;
mod driver;
mod fragmentation;
mod outline;
mod peaks;
mod table;

pub use capacity::{min_capacity, runs_in};
pub use curve::{Curve, CurveBucket};
pub use driver::{ReplayDriver, Served};
pub use fragmentation::{Fragmentation, SegmentAtPeak};
pub use outline::{Outline, outline};
pub use peaks::LiveBlock;

use crate::allocator::{Framework, FrameworkAllocator, RequestIndex, Stats};
use crate::config::DeviceConfig;
use crate::device::Device;
use fragmentation::History;
use peaks::{PeakJournal, PeakState};
use xmem_types::{BlockId, Bytes, Diagnostics, Request, RequestKind, StreamId, Workload};

/// The result of replaying a job.
#[derive(Clone, Debug)]
pub struct Replay {
    /// `torch.cuda.memory_stats` at the end. After an out-of-memory the job continues without
    /// limit, and these figures cover all of it; [`OutOfMemory::stats`] are those until then.
    pub stats: Stats,
    /// The first moment of the highest allocated bytes, over the whole replay.
    pub peak: Peak,
    /// The first moment of the highest reserved bytes, over the whole replay.
    pub reserved_peak: Peak,
    /// The blocks handed out at [`Replay::peak`], in order of allocation.
    pub live_at_peak: Vec<LiveBlock>,
    /// The segments at [`Replay::peak`], by address.
    pub segments_at_peak: Vec<SegmentAtPeak>,
    /// The use of the segments at [`Replay::peak`].
    pub fragmentation: Fragmentation,
    /// The use of the segments at [`Replay::reserved_peak`].
    pub fragmentation_at_reserved_peak: Fragmentation,
    /// Allocated and reserved bytes after each request.
    pub curve: Curve,
    /// The first allocation that the device could not serve; `None` if the job ran.
    pub oom: Option<OutOfMemory>,
    /// The peaks of the same job with unlimited memory. They differ from this replay's when
    /// cached memory had to be released for lack of space.
    pub unlimited: UnlimitedPeaks,
    /// Allocations that were served with less than was requested first, as their
    /// [`Fallbacks`](xmem_types::Fallbacks) allow.
    pub smaller: u64,
    /// The oddities of the requests.
    pub diagnostics: Diagnostics,
}

impl Replay {
    /// Returns whether the job ran to its end within the device's capacity.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.oom.is_none()
    }
}

/// The moment after a request at which a figure was highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The request; 0 if nothing was ever allocated.
    pub request: RequestIndex,
    /// Bytes of blocks handed out then.
    pub allocated: Bytes,
    /// Bytes of segments then.
    pub reserved: Bytes,
}

/// Peaks where memory is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnlimitedPeaks {
    /// `torch.cuda.max_memory_allocated`.
    pub allocated: Bytes,
    /// `torch.cuda.max_memory_reserved`.
    pub reserved: Bytes,
}

/// The allocation at which PyTorch would raise `torch.OutOfMemoryError`. The figures are those of
/// its message: taken after everything cached was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The request that failed.
    pub request: RequestIndex,
    /// The block that was requested.
    pub block: BlockId,
    /// The stream it was requested on.
    pub stream: StreamId,
    /// Bytes that the program requested.
    pub requested: Bytes,
    /// The segment requested from the device ("Tried to allocate").
    pub tried: Bytes,
    /// Bytes of blocks handed out.
    pub allocated: Bytes,
    /// Bytes of segments that could not be released, as parts of them are in use.
    pub reserved: Bytes,
    /// The free memory of the device; zero if it has no limit.
    pub device_free: Bytes,
    /// The largest block that was cached nevertheless: too small, or of another stream.
    pub largest_cached: Bytes,
    /// The free memory inside segments then.
    pub fragmentation: Fragmentation,
    /// All statistics at that moment.
    pub stats: Stats,
    /// The highest reserved bytes when the job continues from here without limit. With this
    /// capacity from the start the job may behave differently; [`min_capacity`] is the boundary.
    pub needed: Bytes,
}

/// Replays a job's requests through a framework's allocator; PyTorch's is an
/// [`AllocatorConfig`](crate::AllocatorConfig).
///
/// Never fails: an out-of-memory is part of the result, after which the replay continues without
/// limit, and requests that make no sense are counted in [`Replay::diagnostics`].
#[must_use]
pub fn replay<'a, F: Framework>(
    work: impl Into<Workload<'a>>,
    allocator: &F,
    device: &DeviceConfig,
) -> Replay {
    let work = work.into();
    let mut driver = ReplayDriver::new(allocator.over(Device::new(device), ()), work);
    let mut recorder = Recorder::new(work.requests.len());
    for (at, request) in work.requests.iter().enumerate() {
        recorder.serve(&mut driver, RequestIndex(at), request);
    }

    let framework = driver.allocator();
    let smaller = driver.smaller();
    let mut live = Vec::with_capacity(driver.live().count());
    live.extend(driver.live().map(|(id, handle)| LiveBlock::new(id, &framework.block(handle))));
    let stats = framework.stats();
    let history = History { segments: framework.segments(), mappings: framework.mappings() };
    // Of the state at the reserved peak only the segments are returned: its blocks go at once.
    let PeakState { peak: reserved_peak, segments, .. } = recorder.reserved.finish(&live, &history);
    let fragmentation_at_reserved_peak = fragmentation::measure(&segments);
    let allocated = recorder.allocated.finish(&live, &history);
    drop(live);
    let oom = recorder
        .oom
        .map(|oom| OutOfMemory { needed: oom.needed.max(stats.reserved_bytes.all.peak), ..oom });
    // Nothing was released, so the limit changed nothing.
    let undisturbed = oom.is_none() && stats.num_device_free == 0 && smaller == 0;
    let unlimited = if undisturbed {
        UnlimitedPeaks {
            allocated: stats.allocated_bytes.all.peak,
            reserved: stats.reserved_bytes.all.peak,
        }
    } else {
        capacity::unlimited_peaks(work, allocator, device)
    };
    Replay {
        stats,
        peak: allocated.peak,
        reserved_peak,
        fragmentation: fragmentation::measure(&allocated.segments),
        fragmentation_at_reserved_peak,
        live_at_peak: allocated.blocks,
        segments_at_peak: allocated.segments,
        curve: recorder.curve,
        oom,
        unlimited,
        smaller,
        diagnostics: driver.diagnostics().clone(),
    }
}

/// Records what [`Replay`] contains.
struct Recorder {
    allocated: PeakJournal,
    reserved: PeakJournal,
    curve: Curve,
    oom: Option<OutOfMemory>,
}

impl Recorder {
    fn new(requests: usize) -> Self {
        Self {
            allocated: PeakJournal::default(),
            reserved: PeakJournal::default(),
            curve: Curve::with_capacity(requests),
            oom: None,
        }
    }

    /// Serves a request and writes down the result. An allocation that fails is repeated without
    /// limits.
    fn serve<A: FrameworkAllocator>(
        &mut self,
        driver: &mut ReplayDriver<'_, A>,
        at: RequestIndex,
        request: &Request,
    ) {
        if request.kind == RequestKind::Free
            && let Some(handle) = driver.block(request.block)
        {
            let block = LiveBlock::new(request.block, &driver.allocator().block(handle));
            self.allocated.freed(&block);
            self.reserved.freed(&block);
        }
        if let Err(failure) = driver.serve(at, request) {
            self.oom.get_or_insert_with(|| driver.out_of_memory(at, request, failure));
            driver.repeat_without_limits(at, request);
        }
        let (allocated, reserved) = (driver.allocator().allocated(), driver.allocator().reserved());
        let now = Peak { request: at, allocated, reserved };
        self.allocated.reached(allocated, now);
        self.reserved.reached(reserved, now);
        self.curve.push(allocated, reserved);
    }
}
