//! Fragmentation over time, of plans and of allocators.

use super::blocks::PlanBlocks;
use std::collections::BTreeSet;
use xmem_planner::{FreePieces, Moment, Plan};
use xmem_types::{Bytes, RequestKind};

/// The moments of a series, at most.
const MAX_MOMENTS: usize = 256;

/// The free memory of a placement over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FragmentationSeries {
    /// Evenly chosen moments, in order: at most 256, each after an allocation.
    pub moments: Vec<Moment>,
    /// The request that raised the peak.
    pub at_peak: Option<PeakRequest>,
}

/// The request that raised the peak of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeakRequest {
    /// Its tick.
    pub tick: u32,
    /// The block that it made.
    pub block: usize,
    /// The size that was requested.
    pub size: Bytes,
    /// The free memory that it did not use: of an allocator, what was free before in the segments of its pool; of a plan,
    /// what is free below its peak.
    pub free: FreePieces,
}

impl FragmentationSeries {
    /// The fragmentation of a plan.
    #[must_use]
    pub fn of_plan(blocks: &PlanBlocks, plan: &Plan) -> Self {
        let events = blocks.events();
        let mut ticks: Vec<u32> = sampled(&events).into_iter().map(|at| events[at].0).collect();
        ticks.dedup();
        let listed = blocks.list.blocks();
        let tops = (0..listed.len()).filter(|&id| {
            listed[id].size.get() > 0 && plan.offsets()[id] + listed[id].size == plan.peak()
        });
        let highest = tops.min_by_key(|&id| listed[id].start);
        let at_peak = highest.and_then(|block| {
            let tick = listed[block].start;
            let moment = xmem_planner::moments(&blocks.list, plan, &[tick]).pop()?;
            Some(PeakRequest { tick, block, size: listed[block].size, free: moment.free })
        });
        Self { moments: xmem_planner::moments(&blocks.list, plan, &ticks), at_peak }
    }

    /// The classes of requests for which a series is shown: powers of two from 512 bytes to the largest block.
    #[must_use]
    pub fn classes(blocks: &PlanBlocks) -> std::ops::RangeInclusive<u32> {
        let largest = blocks.list.blocks().iter().map(|block| block.size).max();
        9..=largest.and_then(|size| size.get().checked_ilog2()).unwrap_or(9).max(9)
    }

    /// The average over the moments of the unusable free space index of requests of 2^`class` bytes.
    #[must_use]
    pub fn average_in_class(&self, class: u32) -> f64 {
        let sum: f64 = self.moments.iter().map(|at| at.free.unusable_in_class(class)).sum();
        sum / self.moments.len().max(1) as f64
    }

    /// The most bytes below the top that are not live.
    #[must_use]
    pub fn largest_waste(&self) -> Bytes {
        self.moments.iter().map(Moment::waste).max().unwrap_or_default()
    }
}

/// The requests at which the state is looked at: allocations at equal distances.
pub(super) fn sampled(events: &[(u32, usize, RequestKind)]) -> BTreeSet<usize> {
    let is_alloc = |&at: &usize| events[at].2 != RequestKind::Free;
    let allocations: Vec<usize> = (0..events.len()).filter(is_alloc).collect();
    let step = allocations.len().div_ceil(MAX_MOMENTS).max(1);
    allocations.into_iter().step_by(step).collect()
}
