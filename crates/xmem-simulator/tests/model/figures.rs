//! Statistics: summed up anew after each event.

use super::place::{Segment, Use};

/// One statistic, as a sum over all segments says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gauge {
    pub(crate) current: u64,
    pub(crate) peak: u64,
    pub(crate) up: u64,
    pub(crate) down: u64,
}

impl Gauge {
    fn set(&mut self, now: u64) {
        self.up = self.up.saturating_add(now.saturating_sub(self.current));
        self.down = self.down.saturating_add(self.current.saturating_sub(now));
        self.peak = self.peak.max(now);
        self.current = now;
    }
}

/// One statistic for all blocks, the small pools and the large pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfPools {
    pub(crate) all: Gauge,
    pub(crate) small: Gauge,
    pub(crate) large: Gauge,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) allocation: OfPools,
    pub(crate) allocated_bytes: OfPools,
    pub(crate) active: OfPools,
    pub(crate) active_bytes: OfPools,
    pub(crate) requested_bytes: OfPools,
    pub(crate) segment: OfPools,
    pub(crate) reserved_bytes: OfPools,
    pub(crate) inactive_split: OfPools,
    pub(crate) inactive_split_bytes: OfPools,
    pub(crate) oversize_allocations: Gauge,
    pub(crate) oversize_segments: Gauge,
    pub(crate) retries: u64,
    pub(crate) ooms: u64,
    pub(crate) synchronisations: u64,
    pub(crate) device_allocs: u64,
    pub(crate) device_frees: u64,
    pub(crate) oom_rejections: u64,
}

impl Figures {
    pub(super) fn update(&mut self, segments: &[Segment], max_split: Option<u64>) {
        let max_split = max_split.unwrap_or(u64::MAX);
        let held = |_: &Segment, used: Use| matches!(used, Use::Held { .. });
        let active =
            |_: &Segment, used: Use| matches!(used, Use::Held { .. } | Use::Waiting { .. });
        let stuck = |s: &Segment, used: Use| used.is_free() && s.is_split() && !s.expandable;
        let mapped = |_: &Segment, used: Use| used != Use::Unmapped;
        set(&mut self.allocation, segments, |s| count(s, held));
        set(&mut self.allocated_bytes, segments, |s| bytes(s, held));
        set(&mut self.active, segments, |s| count(s, active));
        set(&mut self.active_bytes, segments, |s| bytes(s, active));
        set(&mut self.segment, segments, |s| u64::from(!s.expandable));
        set(&mut self.reserved_bytes, segments, |s| bytes(s, mapped));
        set(&mut self.inactive_split, segments, |s| count(s, stuck));
        set(&mut self.inactive_split_bytes, segments, |s| bytes(s, stuck));
        set(&mut self.requested_bytes, segments, |s| {
            let requested = |used| match used {
                Use::Held { requested } | Use::Waiting { requested } => requested,
                Use::Free | Use::Unmapped => 0,
            };
            s.blocks.iter().map(|b| requested(b.used)).sum()
        });
        let all = segments.iter().flat_map(|s| &s.blocks);
        let oversize = |used: Use, size| matches!(used, Use::Held { .. }) && size >= max_split;
        self.oversize_allocations.set(all.filter(|b| oversize(b.used, b.size)).count() as u64);
        let oversize = segments.iter().filter(|s| !s.expandable && s.size() >= max_split);
        self.oversize_segments.set(oversize.count() as u64);
    }

    pub(super) fn reset_peaks(&mut self) {
        for figure in [
            &mut self.allocation,
            &mut self.allocated_bytes,
            &mut self.active,
            &mut self.active_bytes,
            &mut self.requested_bytes,
            &mut self.segment,
            &mut self.reserved_bytes,
            &mut self.inactive_split,
            &mut self.inactive_split_bytes,
        ] {
            for gauge in [&mut figure.all, &mut figure.small, &mut figure.large] {
                gauge.peak = gauge.current;
            }
        }
        self.oversize_allocations.peak = self.oversize_allocations.current;
        self.oversize_segments.peak = self.oversize_segments.current;
    }
}

fn set(figure: &mut OfPools, segments: &[Segment], of: impl Fn(&Segment) -> u64) {
    figure.all.set(segments.iter().map(&of).sum());
    figure.small.set(segments.iter().filter(|s| s.pool.small).map(&of).sum());
    figure.large.set(segments.iter().filter(|s| !s.pool.small).map(&of).sum());
}

fn count(segment: &Segment, which: impl Fn(&Segment, Use) -> bool) -> u64 {
    segment.blocks.iter().filter(|b| which(segment, b.used)).count() as u64
}

fn bytes(segment: &Segment, which: impl Fn(&Segment, Use) -> bool) -> u64 {
    segment.blocks.iter().filter(|b| which(segment, b.used)).map(|b| b.size).sum()
}
