//! A replay turned into an answer.

use crate::answer::{
    AllocatorCounts, Answer, Fragmentation, LiveBlock, OutOfMemory, Peak, RoleShare,
    UnmodelledShare, Verdict,
};
use crate::curve::{Sections, downsample};
use crate::estimate::{Estimate, Plan};
use crate::facts::TraceFacts;
use crate::moments::{Live, Moments};
use crate::places::Places;
use crate::range::{Range as Spread, Variants};
use crate::timings::Timings;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use xmem_analyzer::{Profile, Role};
use xmem_orchestrator::Schedule;
use xmem_profiles::Device;
use xmem_simulator::{AllocatorChoice, DeviceConfig, Replay};
use xmem_types::{Bytes, Diagnostics, IterationId, Request, Severity, Workload};

/// A schedule with the part of it that the answer is about.
pub(crate) struct Scene<'a> {
    places: Places<'a>,
    schedule: &'a Schedule,
    sections: Sections,
    iterations: Range<IterationId>,
    /// Requests among which peaks are looked for.
    pub(crate) within: Range<usize>,
}

/// What came of the schedule.
pub(crate) struct Played {
    pub(crate) replay: Replay,
    pub(crate) moments: Moments,
    pub(crate) range: Spread,
    pub(crate) min_capacity: Option<Bytes>,
}

/// The first request of each iteration.
pub(crate) fn iteration_starts(profile: &Profile, schedule: &Schedule) -> Vec<usize> {
    let start = |time| schedule.times.partition_point(|&at| at < time);
    profile.iterations.iter().map(|iteration| start(iteration.start)).collect()
}

impl<'a> Scene<'a> {
    pub(crate) fn new(
        profile: &'a Profile,
        schedule: &'a Schedule,
        iterations: Range<IterationId>,
    ) -> Self {
        let count = schedule.requests.len();
        let starts = iteration_starts(profile, schedule);
        let sections = Sections::new(&starts, count);
        let all = iterations.start.index() == 0 && iterations.end.index() == starts.len();
        let within =
            if all { 0..count } else { sections.of_iterations(iterations.start, iterations.end) };
        Self { places: Places { profile }, schedule, sections, iterations, within }
    }

    /// What is replayed: everything up to the end of the part the answer is about.
    pub(crate) fn requests(&self) -> &'a [Request] {
        &self.schedule.requests[..self.within.end]
    }

    /// The same with what it falls back on.
    pub(crate) fn workload(&self) -> Workload<'a> {
        self.schedule.workload(self.within.end)
    }

    /// The job, to be run with other sizes and addresses.
    pub(crate) fn variants<'v>(
        &'v self,
        allocator: &'v AllocatorChoice,
        device: &'v DeviceConfig,
    ) -> Variants<'v> {
        let (count, from) = (self.within.end, self.within.start);
        Variants { schedule: self.schedule, allocator, device, count, from }
    }

    pub(crate) fn answer(
        self,
        played: &Played,
        estimate: &Estimate,
        plan: Plan,
        notes: &Diagnostics,
        trace: TraceFacts,
        timings: Timings,
    ) -> Answer {
        let Played { replay, moments, range, min_capacity } = played;
        let Plan { target, setup, .. } = plan;
        let allocated = replay.curve.allocated();
        let reserved: Vec<Bytes> = replay.curve.iter().map(|p| p.reserved).collect();
        let within = &self.within;
        Answer {
            verdict: verdict(replay, notes),
            iterations: self.iterations.clone(),
            peak: self.peak(played, &target.device),
            range: range.clone(),
            unmodelled: self.unmodelled(&moments.live),
            by_role: self.by_role(&moments.live),
            largest: self.largest(&moments.live, estimate.largest),
            per_iteration: self.sections.peaks(within, allocated, &reserved),
            curve: downsample(&self.sections, within, estimate.curve_points, allocated, &reserved),
            fragmentation: fragmentation(moments),
            allocator: counts(self.requests(), replay),
            out_of_memory: self.out_of_memory(replay, &target.device, setup.memory_fraction),
            min_capacity: *min_capacity,
            rules: self.schedule.effects.clone(),
            findings: notes.iter().map(|d| self.places.finding(d)).collect(),
            trace,
            timings,
            target,
            setup,
        }
    }

    fn peak(&self, played: &Played, device: &Device) -> Peak {
        let Played { replay, moments, .. } = played;
        let reserved = moments.reserved.reserved;
        let place = |at: xmem_simulator::Peak| self.places.of_request(self.schedule, at.request.0);
        Peak {
            allocated: moments.allocated.allocated,
            requested: moments.live.iter().map(|b| b.requested).sum(),
            reserved,
            device: reserved + device.context,
            ample_reserved: replay.unlimited.reserved,
            at: place(moments.allocated),
            reserved_at: place(moments.reserved),
        }
    }

    fn unmodelled(&self, live: &[Live]) -> Vec<UnmodelledShare> {
        let mut shares: BTreeMap<&str, (Bytes, u64)> = BTreeMap::new();
        for b in live {
            let block = self.schedule.block(b.block);
            let Some(op) = block.unmodelled else { continue };
            let share = shares.entry(self.places.profile.op_name(op)).or_default();
            *share = (share.0 + b.bytes, share.1 + 1);
        }
        let share =
            |(op, (bytes, blocks)): (&str, _)| UnmodelledShare { op: op.to_owned(), bytes, blocks };
        let mut shares: Vec<_> = shares.into_iter().map(share).collect();
        shares.sort_by_key(|share| Reverse(share.bytes));
        shares
    }

    fn by_role(&self, live: &[Live]) -> Vec<RoleShare> {
        let share = |role| {
            let mut share = RoleShare { role, bytes: Bytes::ZERO, blocks: 0 };
            for b in live.iter().filter(|b| self.schedule.block(b.block).role == role) {
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
                let block = self.schedule.block(b.block);
                let origin = block.origin.map(|id| self.places.profile.block(id));
                LiveBlock {
                    bytes: b.bytes,
                    requested: b.requested,
                    role: block.role,
                    evidence: origin.map_or("", |o| o.evidence.0),
                    rule: block.rule,
                    origin: self.places.of_block(block),
                }
            })
            .collect()
    }

    fn out_of_memory(
        &self,
        replay: &Replay,
        device: &Device,
        fraction: Option<f64>,
    ) -> Option<OutOfMemory> {
        let oom = replay.oom.as_ref()?;
        Some(OutOfMemory {
            at: self.places.of_request(self.schedule, oom.request.0),
            request: oom.request.0 as u64,
            requested: oom.requested,
            tried: oom.tried,
            free: oom.device_free,
            allocated: oom.allocated,
            reserved: oom.reserved,
            needed: (oom.needed + device.context).max(whole(oom.needed, fraction)),
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

fn verdict(replay: &Replay, notes: &Diagnostics) -> Verdict {
    if notes.worst() == Some(Severity::Serious) {
        Verdict::Withheld
    } else if replay.fits() {
        Verdict::Fits
    } else {
        Verdict::DoesNotFit
    }
}

fn fragmentation(moments: &Moments) -> Fragmentation {
    let rounding = moments.live.iter().map(|b| b.bytes.saturating_sub(b.requested)).sum();
    Fragmentation {
        unused: moments.holes.unused,
        releasable: moments.holes.releasable,
        pieces: moments.holes.pieces,
        largest_piece: moments.holes.largest,
        rounding,
    }
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
