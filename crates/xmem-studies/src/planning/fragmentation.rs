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

    /// The same in the exact form of the index.
    #[must_use]
    pub fn average_for(&self, request: Bytes) -> f64 {
        let sum: f64 = self.moments.iter().map(|at| at.free.unusable(request)).sum();
        sum / self.moments.len().max(1) as f64
    }

    /// The moments in `count` spans of as equally many as can be; fewer spans if there are fewer moments.
    pub fn spans(&self, count: usize) -> impl Iterator<Item = &[Moment]> {
        let (moments, count) = (&self.moments, count.max(1));
        let edge = move |span: usize| span * moments.len() / count;
        let spans = (0..count).map(move |span| &moments[edge(span)..edge(span + 1)]);
        spans.filter(|span| !span.is_empty())
    }

    /// The averages over [`spans`](Self::spans) of a figure of the free memory.
    pub fn over_time(&self, count: usize, figure: impl Fn(&FreePieces) -> f64) -> Vec<f64> {
        let average = |span: &[Moment]| {
            span.iter().map(|at| figure(&at.free)).sum::<f64>() / span.len() as f64
        };
        self.spans(count).map(average).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_all_moments_and_averages_of_theirs() {
        let moment = |tick: u32| Moment {
            tick,
            free: FreePieces::new(vec![Bytes(4); tick as usize]),
            ..Moment::default()
        };
        let series = FragmentationSeries { moments: (0..7).map(moment).collect(), at_peak: None };
        let starts = |count| series.spans(count).map(|span| span[0].tick).collect::<Vec<_>>();
        assert_eq!(starts(3), [0, 2, 4]);
        assert_eq!(starts(9).len(), 7);
        assert_eq!(starts(0), [0]);
        let pieces = series.over_time(3, |free| free.count() as f64);
        assert_eq!(pieces, [0.5, 2.5, 5.0]);
        assert!(FragmentationSeries::default().over_time(3, |_| 1.0).is_empty());
        // Nothing is free at the first moment; later, no piece is large enough.
        assert_eq!((series.average_for(Bytes(4)), series.average_for(Bytes(5))), (0.0, 6.0 / 7.0));
    }
}
