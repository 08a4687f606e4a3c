//! The range of an answer, and its causes.
//!
//! Each uncertainty has bounds of its own: sizes that a block may have, or orders that a driver may
//! follow. The job is replayed at those bounds, one uncertainty at a time and all together. Where a release of
//! cuDNN may run that was not asked, it is also replayed with families of workspaces: a smaller workspace may
//! leave larger gaps, so that no bound on the sizes bounds the peak. Errors without a named uncertainty are not
//! part of the range.

use std::collections::BTreeSet;
use xmem_orchestrator::{Bound, Schedule, UncertainBlock, Uncertainty, WorkspaceFamily};
use xmem_parallel::both;
use xmem_simulator::{AddressOrder, AllocatorChoice, DeviceConfig, Outline, RequestIndex, outline};
use xmem_types::{Bytes, Request, Workload};

/// The range in which the peaks lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeakRange {
    /// Peak allocated.
    pub allocated: Bounds,
    /// Peak reserved.
    pub reserved: Bounds,
    /// The confidence in the verdict over the whole range.
    pub confidence: Confidence,
    /// The effect of each uncertainty alone, in the order of reports. Empty if there are none.
    pub uncertainties: Vec<UncertaintyEffect>,
}

/// The lowest and the highest of what is possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// At least.
    pub low: Bytes,
    /// At most.
    pub high: Bytes,
}

/// The confidence that the verdict holds over the whole range. Ordered: of two reasons to doubt an answer, the lower one
/// counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The job is expected to run out of memory, and may run.
    MayFit,
    /// The job is expected to run, and may not.
    MayFail,
    /// It does, but the recording itself is doubtful.
    Doubtful,
    /// It does, but the range does not have everything: there are choices that two ends cannot bound.
    Likely,
    /// It does.
    #[default]
    Certain,
}

/// The effect of one uncertainty on the peaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncertaintyEffect {
    /// The name.
    pub name: &'static str,
    /// The number of uncertain blocks; none if the uncertainty does not concern blocks.
    pub blocks: Option<u64>,
    /// Peak allocated, without the other uncertainties.
    pub allocated: Bounds,
    /// Peak reserved, without the other uncertainties.
    pub reserved: Bounds,
}

/// The uncertainty about the memory that the device leaves to the allocator: its total and the context.
const DEVICE_MEMORY: &str = "device_memory";

/// The uncertainty about the order in which the driver hands out addresses.
const ADDRESSES: &str = "address_order";

impl Confidence {
    /// The name in machine-readable output (`may_fail`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::MayFail => "may_fail",
            Self::MayFit => "may_fit",
            Self::Doubtful => "doubtful",
        }
    }
}

impl PeakRange {
    /// Extends the range by the effect of an uncertainty.
    pub(crate) fn add(&mut self, effect: UncertaintyEffect) {
        self.uncertainties.push(effect);
        for (whole, part) in
            [(&mut self.allocated, effect.allocated), (&mut self.reserved, effect.reserved)]
        {
            whole.include(part.low);
            whole.include(part.high);
        }
    }
}

impl Bounds {
    /// Returns whether both are the same.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }

    /// From `low` to `high` of so many `parts` of a value.
    pub(crate) const fn around(value: Bytes, [low, high]: [u64; 2], parts: u64) -> Self {
        let part = value.get() / parts;
        Self { low: Bytes(part * low), high: Bytes(part.saturating_mul(high)) }
    }

    const fn at(value: Bytes) -> Self {
        Self { low: value, high: value }
    }

    fn include(&mut self, value: Bytes) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }
}

/// A job that can be run with other sizes and other addresses.
pub(crate) struct Variants<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) allocator: &'a AllocatorChoice,
    pub(crate) device: &'a DeviceConfig,
    /// The device with the least memory that it may leave to the allocator, and with the most.
    pub(crate) extremes: &'a [DeviceConfig; 2],
    /// The requests that are replayed.
    pub(crate) count: usize,
    /// The first of them that the peaks are about.
    pub(crate) from: usize,
}

/// A variant's outlines.
#[derive(Default)]
struct Outlines(Vec<Outline>);

impl Variants<'_> {
    /// The range around what is expected.
    pub(crate) fn range(&self, expected: Outline) -> PeakRange {
        let present: BTreeSet<Uncertainty> =
            self.schedule.uncertain.iter().map(|u| u.range.cause).collect();
        let present: Vec<Uncertainty> = present.into_iter().collect();
        let mut all = Outlines(vec![expected]);
        let mut uncertainties = Vec::new();
        for &cause in &present {
            let mut outlines =
                Outlines(self.at_both_bounds(&[cause], self.device.address_order).into());
            let about = |u: &&UncertainBlock| u.range.cause == cause;
            let of_cause = || self.schedule.uncertain.iter().filter(about);
            if of_cause().any(|u| u.range.unasked.is_some()) {
                outlines.0.extend(self.in_families(cause));
            }
            let blocks = of_cause().count() as u64;
            uncertainties.push(outlines.effect(cause.name(), Some(blocks), expected));
            all.0.append(&mut outlines.0);
        }
        let orders = self.other_orders();
        if !orders.is_empty() {
            let mut outlines = Outlines::default();
            for &order in &orders {
                outlines.0.push(self.run(&[], Bound::Low, order));
            }
            uncertainties.push(outlines.effect(ADDRESSES, None, expected));
            all.0.append(&mut outlines.0);
        }
        if !present.is_empty() {
            // A single uncertainty was replayed above at the order that is expected.
            let expected_order = (present.len() > 1).then_some(self.device.address_order);
            for order in orders.iter().copied().chain(expected_order) {
                all.0.extend(self.at_both_bounds(&present, order));
            }
        }
        let mut confidence = all.confidence(expected, self.is_bounded(&present));
        let is_settled = matches!(confidence, Confidence::Certain | Confidence::Likely);
        if is_settled && self.depends_on_device(&all, expected, &present) {
            confidence = if expected.fits { Confidence::MayFail } else { Confidence::MayFit };
            uncertainties.push(Outlines(vec![expected]).effect(DEVICE_MEMORY, None, expected));
        }
        PeakRange {
            allocated: all.allocated(),
            reserved: all.reserved(),
            confidence,
            uncertainties,
        }
    }

    /// Returns whether a job that fits does not with the least memory that the device may leave to the allocator,
    /// or one that does not fit does with the most.
    fn depends_on_device(
        &self,
        all: &Outlines,
        expected: Outline,
        present: &[Uncertainty],
    ) -> bool {
        let [least, most] = self.extremes;
        let device = if expected.fits { least } else { most };
        let Some(available) = device.available() else { return false };
        let is_clear = match expected.fits {
            true => all.reserved().high <= available,
            false => all.allocated().low > available,
        };
        if device == self.device || is_clear {
            return false;
        }
        let there = Self { device, ..*self };
        let bounds =
            if present.is_empty() { &[Bound::Low][..] } else { &[Bound::Low, Bound::High] };
        let fits = |&bound: &Bound| there.run(present, bound, device.address_order).fits;
        bounds.iter().any(|bound| fits(bound) != expected.fits)
    }

    /// The convolutions' workspaces as other releases of cuDNN might choose them, at each order of addresses for
    /// the families with the lowest and the highest peak.
    fn in_families(&self, cause: Uncertainty) -> Vec<Outline> {
        let run =
            |family: &WorkspaceFamily, order| self.run(&[cause], Bound::Family(*family), order);
        let order = self.device.address_order;
        let mut outlines = Vec::new();
        for pair in WorkspaceFamily::ALL.chunks(2) {
            let (first, second) =
                both(|| run(&pair[0], order), || pair.get(1).map(|f| run(f, order)));
            outlines.push(first);
            outlines.extend(second);
        }
        let peaks = || WorkspaceFamily::ALL.iter().zip(&outlines);
        let lowest = peaks().min_by_key(|(_, outline)| outline.reserved);
        let highest = peaks().max_by_key(|(_, outline)| outline.reserved);
        let ends: Vec<WorkspaceFamily> =
            [lowest, highest].into_iter().flatten().map(|(family, _)| *family).collect();
        for order in self.other_orders() {
            outlines.extend(ends.iter().map(|family| run(family, order)));
        }
        outlines
    }

    /// Returns whether the ends of the ranges bound the peaks. Each convolution that is benchmarked has its own
    /// fastest plan, and so has each whose release of cuDNN was not asked: the peak of a mixture may lie beyond
    /// those of the ends. What another GPU would request is not bounded at all.
    fn is_bounded(&self, present: &[Uncertainty]) -> bool {
        !self.schedule.unbounded
            && !present.contains(&Uncertainty::ConvolutionBenchmark)
            && self.schedule.uncertain.iter().all(|u| u.range.unasked.is_none())
    }

    /// Orders of addresses that the driver may follow instead, if it makes a difference.
    fn other_orders(&self) -> Vec<AddressOrder> {
        let AllocatorChoice::Caching(config) = self.allocator else { return Vec::new() };
        if !config.depends_on_addresses() {
            return Vec::new();
        }
        let orders = [AddressOrder::Driver, AddressOrder::Ascending, AddressOrder::Descending];
        orders.into_iter().filter(|&order| order != self.device.address_order).collect()
    }

    fn at_both_bounds(&self, uncertainties: &[Uncertainty], order: AddressOrder) -> [Outline; 2] {
        let run = |bound| self.run(uncertainties, bound, order);
        both(|| run(Bound::Low), || run(Bound::High)).into()
    }

    fn run(&self, uncertainties: &[Uncertainty], bound: Bound, order: AddressOrder) -> Outline {
        let device = DeviceConfig { address_order: order, ..*self.device };
        if uncertainties.is_empty() {
            let work = self.schedule.workload(self.count);
            return outline(work, self.allocator, &device, RequestIndex(self.from));
        }
        let requests = self.schedule.bounded(self.count, uncertainties, bound);
        let from = RequestIndex(self.place_in(&requests));
        // Where calls are recorded, no block is added, so that places stay.
        let work =
            Workload::new(&requests, &self.schedule.fallbacks).with_calls(&self.schedule.calls);
        outline(work, self.allocator, &device, from)
    }

    /// The position of the first request that counts among others.
    fn place_in(&self, requests: &[Request]) -> usize {
        let Some(first) = self.schedule.requests.get(self.from).filter(|_| self.from > 0) else {
            return 0;
        };
        let kind = std::mem::discriminant(&first.kind);
        let found = requests.iter().position(|other| {
            other.block == first.block && std::mem::discriminant(&other.kind) == kind
        });
        found.unwrap_or(0)
    }
}

impl Outlines {
    fn effect(
        &self,
        name: &'static str,
        blocks: Option<u64>,
        expected: Outline,
    ) -> UncertaintyEffect {
        let (mut allocated, mut reserved) = (self.allocated(), self.reserved());
        allocated.include(expected.allocated);
        reserved.include(expected.reserved);
        UncertaintyEffect { name, blocks, allocated, reserved }
    }

    fn allocated(&self) -> Bounds {
        self.bounds(|outline| outline.allocated)
    }

    fn reserved(&self) -> Bounds {
        self.bounds(|outline| outline.reserved)
    }

    fn bounds(&self, value: fn(&Outline) -> Bytes) -> Bounds {
        let mut values = self.0.iter().map(value);
        let mut bounds = Bounds::at(values.next().unwrap_or_default());
        values.for_each(|value| bounds.include(value));
        bounds
    }

    fn confidence(&self, expected: Outline, is_bounded: bool) -> Confidence {
        match (expected.fits, self.0.iter().all(|outline| outline.fits == expected.fits)) {
            (_, true) if is_bounded => Confidence::Certain,
            (_, true) => Confidence::Likely,
            (true, false) => Confidence::MayFail,
            (false, false) => Confidence::MayFit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_orchestrator::{ConvPass, Origin, SizeRange, UnaskedConvolution, UncertainPlace};
    use xmem_simulator::AllocatorConfig;
    use xmem_types::{BlockId, RequestKind, StreamId};

    const fn alloc(id: u32, mib: u64) -> Request {
        let kind = RequestKind::Alloc { size: Bytes::mib(mib), stream: StreamId(0) };
        Request { block: BlockId(id), kind }
    }

    const fn free(id: u32) -> Request {
        Request { block: BlockId(id), kind: RequestKind::Free }
    }

    const fn bounds(low: u64, high: u64) -> Bounds {
        Bounds { low: Bytes::mib(low), high: Bytes::mib(high) }
    }

    /// 100 MiB, then for a while a block between it and another that is not expected.
    fn schedule(uncertain: Vec<UncertainBlock>) -> Schedule {
        let block = xmem_orchestrator::ScheduledBlock {
            size: Bytes::ZERO,
            role: xmem_analyzer::Role::Workspace,
            origin: Origin::Preexisting,
            rule: None,
            unmodeled: None,
        };
        Schedule {
            requests: vec![alloc(0, 100), alloc(1, 40), free(1), free(0)],
            blocks: vec![block.clone(), block],
            uncertain,
            ..Schedule::default()
        }
    }

    fn range(schedule: &Schedule, capacity: Option<Bytes>, from: usize) -> PeakRange {
        let device = DeviceConfig { capacity, ..DeviceConfig::default() };
        let release = xmem_types::TorchVersion::new(2, 13);
        let allocator = AllocatorChoice::Caching(AllocatorConfig::of(release));
        let count = schedule.requests.len();
        let expected = outline(schedule.workload(count), &allocator, &device, RequestIndex(from));
        let extremes = &[device, device];
        Variants { schedule, allocator: &allocator, device: &device, extremes, count, from }
            .range(expected)
    }

    fn uncertainties() -> Vec<UncertainBlock> {
        let size = |low, high, cause| {
            let (low, high) = (Bytes::mib(low), Bytes::mib(high));
            SizeRange::new(low, high, cause)
        };
        let between = UncertainPlace::Between { alloc: 1, free: Some(2) };
        vec![
            UncertainBlock {
                range: size(20, 60, Uncertainty::ConvolutionPlan),
                place: UncertainPlace::Block(BlockId(1)),
            },
            UncertainBlock { range: size(0, 10, Uncertainty::Operator), place: between },
        ]
    }

    #[test]
    fn each_uncertainty_has_a_part_and_all_together_the_whole() {
        let found = range(&schedule(uncertainties()), None, 0);
        assert_eq!((found.allocated, found.reserved), (bounds(120, 170), bounds(120, 170)));
        assert_eq!(found.confidence, Confidence::Certain);
        let parts: Vec<_> =
            found.uncertainties.iter().map(|d| (d.name, d.blocks, d.reserved)).collect();
        let expected = [
            ("convolution_plan", Some(1), bounds(120, 160)),
            ("operator", Some(1), bounds(140, 150)),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn the_verdict_may_be_uncertain() {
        let schedule = schedule(uncertainties());
        for (capacity, confidence) in [
            (170, Confidence::Certain),
            (168, Confidence::MayFail),
            (140, Confidence::MayFail),
            (138, Confidence::MayFit),
            (120, Confidence::MayFit),
            (118, Confidence::Certain),
        ] {
            let found = range(&schedule, Some(Bytes::mib(capacity)), 0);
            assert_eq!(found.confidence, confidence, "{capacity} MiB");
        }
    }

    #[test]
    fn a_device_that_may_leave_less_or_more_memory_decides_near_its_limit() {
        let schedule = schedule(Vec::new());
        let allocator =
            AllocatorChoice::Caching(AllocatorConfig::of(xmem_types::TorchVersion::new(2, 13)));
        let count = schedule.requests.len();
        for (capacity, confidence) in [
            (160, Confidence::Certain),
            (158, Confidence::MayFail),
            (150, Confidence::MayFail),
            (148, Confidence::MayFit),
            (130, Confidence::MayFit),
            (128, Confidence::Certain),
        ] {
            let device = |more: u64, taken: u64| DeviceConfig {
                capacity: Some(Bytes::mib(capacity + more)),
                taken: Bytes::mib(taken),
                ..DeviceConfig::default()
            };
            let (device, extremes) = (&device(0, 10), &[device(0, 20), device(15, 5)]);
            let expected = outline(schedule.workload(count), &allocator, device, RequestIndex(0));
            let variants = Variants {
                schedule: &schedule,
                allocator: &allocator,
                device,
                extremes,
                count,
                from: 0,
            };
            let found = variants.range(expected);
            assert_eq!(found.confidence, confidence, "{capacity} MiB");
            let names: Vec<_> = found.uncertainties.iter().map(|cause| cause.name).collect();
            let is_settled = confidence == Confidence::Certain;
            assert_eq!(names, if is_settled { vec![] } else { vec!["device_memory"] });
        }
    }

    #[test]
    fn a_verdict_about_benchmarked_convolutions_is_never_certain() {
        let mut blocks = uncertainties();
        blocks[0].range.cause = Uncertainty::ConvolutionBenchmark;
        let schedule = schedule(blocks);
        for (capacity, confidence) in [
            (10_000, Confidence::Likely),
            (168, Confidence::MayFail),
            (138, Confidence::MayFit),
            (118, Confidence::Likely),
        ] {
            let found = range(&schedule, Some(Bytes::mib(capacity)), 0);
            assert_eq!(found.confidence, confidence, "{capacity} MiB");
        }
    }

    #[test]
    fn families_of_workspaces_widen_the_range_where_no_release_was_asked() {
        let mut blocks = uncertainties();
        blocks[0].range = SizeRange::new(Bytes::mib(40), Bytes::mib(40), blocks[0].range.cause);
        let asked = range(&schedule(blocks.clone()), None, 0);
        assert_eq!(asked.reserved, bounds(140, 150));
        blocks[0].range = blocks[0].range.of_any_release(UnaskedConvolution {
            pass: ConvPass::BackwardWeight,
            tensors: Bytes::mib(50),
        });
        let other = range(&schedule(blocks), None, 0);
        assert_eq!(other.reserved, bounds(100, 300));
        assert_eq!((asked.confidence, other.confidence), (Confidence::Certain, Confidence::Likely));
        let parts: Vec<_> = other.uncertainties.iter().map(|d| (d.name, d.reserved)).collect();
        let expected = [("convolution_plan", bounds(100, 300)), ("operator", bounds(140, 150))];
        assert_eq!(parts, expected);
    }

    #[test]
    fn peaks_are_looked_for_where_the_answer_is_about() {
        let found = range(&schedule(uncertainties()), None, 3);
        assert_eq!(found.allocated, bounds(0, 0));
        assert_eq!(found.reserved, bounds(120, 170));
    }

    #[test]
    fn without_uncertainty_the_range_is_a_point() {
        let found = range(&schedule(Vec::new()), None, 0);
        assert_eq!((found.allocated, found.reserved), (bounds(140, 140), bounds(140, 140)));
        assert!(found.uncertainties.is_empty() && found.reserved.is_exact());
    }
}
