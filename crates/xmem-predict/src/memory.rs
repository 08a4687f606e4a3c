//! The memory of a predicted job: its schedule is replayed, and the figures are taken from the
//! replay.

mod curve;
mod figures;
mod peaks;

pub use figures::{
    AllocatorCounts, Curve, Fragmentation, IterationPeak, LiveBlock, OutOfMemory, Peak, RoleShare,
    ShortAt, UnmodeledShare,
};

use crate::coverage::Coverage;
use crate::prediction::Prediction;
use crate::range::{Confidence, PeakRange, UncertaintyEffect, Variants};
use peaks::{FreeMemory, Live, Peaks};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use xmem_analyzer::Role;
use xmem_simulator::{AllocatorChoice, DeviceConfig, Outline, Replay};
use xmem_types::{Bytes, Diagnostics, IterationId, Request, Workload};

/// The search for the smallest sufficient capacity. It costs a few dozen replays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CapacitySearch {
    /// Leave it out.
    Skip,
    /// Run it where the job does not certainly fit, to say what it needs.
    #[default]
    WhereShort,
    /// Find it.
    Run,
}

/// The amount of detail in a [`PredictedMemory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The number of largest blocks at the peak that are listed.
    pub largest: usize,
    /// The highest number of points of the curve.
    pub curve_points: usize,
    /// The search for the smallest sufficient capacity.
    pub capacity: CapacitySearch,
}

impl Default for Detail {
    /// 10 blocks, 240 points, a search where the job does not certainly fit.
    fn default() -> Self {
        Self { largest: 10, curve_points: 240, capacity: CapacitySearch::default() }
    }
}

/// The memory that a job needs, over time and by cause.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PredictedMemory {
    /// True if the replay under the device's own capacity runs to its end.
    pub fits: bool,
    /// The peaks.
    pub peak: Peak,
    /// The range in which the peaks lie.
    pub range: PeakRange,
    /// Live bytes at the peak of allocated memory by operators that are not modeled, most first.
    pub unmodeled: Vec<UnmodeledShare>,
    /// Live bytes at the peak of allocated memory by role, in the order of [`Role::ALL`].
    pub by_role: Vec<RoleShare>,
    /// The largest blocks alive at that peak, largest first.
    pub largest: Vec<LiveBlock>,
    /// Peaks iteration by iteration; the first entry may stand for what comes before the first.
    pub per_iteration: Vec<IterationPeak>,
    /// How far the script was recorded, with the peaks of its parts.
    pub coverage: Coverage,
    /// Memory over the run.
    pub curve: Curve,
    /// Reserved memory that holds no tensor.
    pub fragmentation: Fragmentation,
    /// The allocator's counts.
    pub allocator: AllocatorCounts,
    /// The request at which the job runs out of memory, if it does.
    pub out_of_memory: Option<OutOfMemory>,
    /// The smallest device memory in which the job runs, if it was looked for.
    pub min_capacity: Option<Bytes>,
    /// The oddities of the replay.
    pub diagnostics: Diagnostics,
}

impl PredictedMemory {
    /// Extends the range by an uncertainty that was not replayed. Returns the confidence if the verdict is
    /// another at an end of it, on a device that leaves between `least` and `most` bytes to the allocator.
    pub fn extend(
        &mut self,
        effect: UncertaintyEffect,
        (least, most): (Bytes, Bytes),
    ) -> Option<Confidence> {
        self.range.add(effect);
        match self.fits {
            true if effect.reserved.high > least => Some(Confidence::MayFail),
            false if effect.reserved.low <= most => Some(Confidence::MayFit),
            _ => None,
        }
    }
}

impl Prediction<'_> {
    /// Replays the job up to the end of `iterations`; peaks are looked for among their requests.
    #[must_use]
    pub fn memory(&self, iterations: &Range<IterationId>, detail: &Detail) -> PredictedMemory {
        let measured = Measured::new(self, self.requests_of(iterations));
        let variants = Variants {
            schedule: &self.schedule,
            allocator: &self.setup.choice,
            device: &self.device,
            extremes: &self.extremes,
            count: measured.within.end,
            from: measured.within.start,
        };
        let min_capacity =
            (detail.capacity == CapacitySearch::Run).then(|| self.min_capacity(iterations));
        let range = variants.range(measured.outline());
        measured.figures(detail, range, min_capacity)
    }

    /// The smallest device memory in which the job runs up to the end of `iterations`, context included.
    #[must_use]
    pub fn min_capacity(&self, iterations: &Range<IterationId>) -> Bytes {
        let work = self.workload_until(self.requests_of(iterations).end);
        xmem_simulator::min_capacity(work, &self.setup.choice, &self.device) + self.device.taken
    }

    fn workload_until(&self, end: usize) -> Workload<'_> {
        self.schedule.workload(end)
    }
}

/// A replay with the part of it that is looked at.
struct Measured<'p> {
    prediction: &'p Prediction<'p>,
    /// Requests among which peaks are looked for.
    within: Range<usize>,
    replay: Replay,
    peaks: Peaks,
}

impl<'p> Measured<'p> {
    fn new(prediction: &'p Prediction<'p>, within: Range<usize>) -> Self {
        let work = prediction.workload_until(within.end);
        let (allocator, device) = (&prediction.setup.choice, &prediction.device);
        let limited = xmem_simulator::replay(work, allocator, device);
        let ample = device.without_limit();
        let replay = with_ample_figures(limited, work, allocator, &ample);
        let peaks = if within.start == 0 {
            Peaks::of_replay(&replay)
        } else {
            let device = if replay.fits() { device } else { &ample };
            Peaks::within(&within, &replay.curve, work, allocator, device)
        };
        let peaks = match allocator {
            AllocatorChoice::MallocAsync(_) => peaks.of_a_pool(),
            _ => peaks,
        };
        Self { prediction, within, replay, peaks }
    }

    fn outline(&self) -> Outline {
        Outline {
            allocated: self.peaks.allocated.allocated,
            reserved: self.peaks.reserved.reserved,
            fits: self.replay.fits(),
        }
    }

    fn figures(
        self,
        detail: &Detail,
        range: PeakRange,
        min_capacity: Option<Bytes>,
    ) -> PredictedMemory {
        let Prediction { sections, .. } = self.prediction;
        let (replay, live) = (&self.replay, &self.peaks.live);
        let allocated = replay.curve.allocated();
        let reserved: Vec<Bytes> = replay.curve.iter().map(|p| p.reserved).collect();
        let (within, points) = (&self.within, detail.curve_points);
        PredictedMemory {
            fits: replay.fits(),
            peak: self.peak(),
            range,
            unmodeled: self.unmodeled(live),
            by_role: self.by_role(live),
            largest: self.largest(live, detail.largest),
            per_iteration: curve::iteration_peaks(sections, within, allocated, &reserved),
            coverage: Coverage::new(
                self.prediction.locator.profile,
                &self.prediction.schedule,
                within,
                (allocated, &reserved),
            ),
            curve: curve::downsample(sections, within, points, allocated, &reserved),
            fragmentation: self.fragmentation(),
            allocator: counts(&self.prediction.requests()[..within.end], replay),
            out_of_memory: self.out_of_memory(),
            min_capacity,
            diagnostics: replay.diagnostics.clone(),
        }
    }

    fn peak(&self) -> Peak {
        let Self { prediction: Prediction { locator, schedule, device, .. }, peaks, .. } = self;
        let reserved = peaks.reserved.reserved;
        let place = |at: xmem_simulator::Peak| locator.of_request(schedule, at.request.0);
        Peak {
            allocated: peaks.allocated.allocated,
            requested: peaks.live.iter().map(|b| b.requested).sum(),
            reserved,
            device: reserved + device.taken,
            ample_reserved: self.replay.unlimited.reserved,
            at: place(peaks.allocated),
            reserved_at: place(peaks.reserved),
        }
    }

    fn unmodeled(&self, live: &[Live]) -> Vec<UnmodeledShare> {
        let mut shares: BTreeMap<&str, (Bytes, u64)> = BTreeMap::new();
        for b in live {
            let block = self.prediction.schedule.block(b.block);
            let Some(op) = block.unmodeled else { continue };
            let share = shares.entry(self.prediction.locator.profile.op_name(op)).or_default();
            *share = (share.0 + b.bytes, share.1 + 1);
        }
        let share =
            |(op, (bytes, blocks)): (&str, _)| UnmodeledShare { op: op.to_owned(), bytes, blocks };
        let mut shares: Vec<_> = shares.into_iter().map(share).collect();
        shares.sort_by_key(|share| Reverse(share.bytes));
        shares
    }

    fn by_role(&self, live: &[Live]) -> Vec<RoleShare> {
        let share = |role| {
            let mut share = RoleShare { role, bytes: Bytes::ZERO, blocks: 0 };
            for b in live.iter().filter(|b| self.prediction.schedule.block(b.block).role == role) {
                share.bytes += b.bytes;
                share.blocks += 1;
            }
            share
        };
        Role::ALL.into_iter().map(share).collect()
    }

    fn largest(&self, live: &[Live], count: usize) -> Vec<LiveBlock> {
        let mut order: Vec<&Live> = live.iter().collect();
        order.sort_by_key(|b| (Reverse(b.bytes), b.block));
        order
            .into_iter()
            .take(count)
            .map(|b| {
                let block = self.prediction.schedule.block(b.block);
                let recorded =
                    block.origin.recorded().map(|id| self.prediction.locator.profile.block(id));
                LiveBlock {
                    bytes: b.bytes,
                    requested: b.requested,
                    role: block.role,
                    evidence: recorded.map_or("", |block| block.evidence.0),
                    rule: block.rule.map(|rule| rule.name),
                    origin: self.prediction.locator.of_block(block),
                }
            })
            .collect()
    }

    /// Measured where memory is short: at the request that the device cannot serve, else at the peak of allocated memory.
    fn fragmentation(&self) -> Fragmentation {
        let live = self.peaks.live.iter();
        let rounding = live.map(|b| b.bytes.saturating_sub(b.requested)).sum();
        let (at, reserved, free) = match &self.replay.oom {
            Some(oom) => {
                let mut free = FreeMemory::from(oom.fragmentation);
                // Allocators without a layout have no pieces.
                free.unused = oom.reserved - oom.allocated;
                (ShortAt::OutOfMemory, oom.reserved, free)
            }
            None => (ShortAt::PeakAllocated, self.peaks.allocated.reserved, self.peaks.free),
        };
        Fragmentation {
            at,
            reserved,
            unused: free.unused,
            releasable: free.releasable,
            pieces: free.pieces,
            largest_piece: free.largest,
            rounding,
        }
    }

    fn out_of_memory(&self) -> Option<OutOfMemory> {
        let oom = self.replay.oom.as_ref()?;
        let Prediction { locator, schedule, device, setup, .. } = self.prediction;
        Some(OutOfMemory {
            at: locator.of_request(schedule, oom.request.0),
            request: oom.request.0 as u64,
            requested: oom.requested,
            tried: oom.tried,
            free: oom.device_free,
            allocated: oom.allocated,
            reserved: oom.reserved,
            needed: (oom.needed + device.taken).max(whole(oom.needed, setup.memory_fraction)),
        })
    }
}

/// Device memory of which `fraction` is `part`.
fn whole(part: Bytes, fraction: Option<f64>) -> Bytes {
    match fraction {
        Some(fraction) if fraction > 0.0 => Bytes((part.get() as f64 / fraction).ceil() as u64),
        _ => part,
    }
}

/// If the job does not fit, its figures are those of a device with space for all; what is left of
/// the limited replay is where and how memory ran out.
fn with_ample_figures(
    limited: Replay,
    work: Workload<'_>,
    allocator: &AllocatorChoice,
    ample: &DeviceConfig,
) -> Replay {
    let Some(oom) = limited.oom else { return limited };
    let mut replay = xmem_simulator::replay(work, allocator, ample);
    replay.stats.num_ooms = limited.stats.num_ooms;
    replay.stats.num_alloc_retries = limited.stats.num_alloc_retries;
    replay.oom = Some(xmem_simulator::OutOfMemory { needed: replay.unlimited.reserved, ..oom });
    replay
}

fn counts(requests: &[Request], replay: &Replay) -> AllocatorCounts {
    let stats = &replay.stats;
    AllocatorCounts {
        requests: requests.len() as u64,
        allocations: stats.allocation.all.allocated,
        segments_peak: stats.segment.all.peak,
        device_allocs: stats.num_device_alloc,
        device_frees: stats.num_device_free,
        retries: stats.num_alloc_retries,
    }
}
