//! Runs over many orders of lengths, and the distribution of their peaks.

use super::sequence::Sequence;
use super::{LengthModel, LengthSettings, LengthsError, orders};
use crate::allocator::AllocatorSetup;
use xmem_parallel::both;
use xmem_simulator::{
    AllocatorChoice, Device, Framework, FrameworkAllocator, ReplayDriver, RequestIndex, outline,
};
use xmem_types::{Bytes, Request, Workload};

/// The most requests of a run.
const MAX_REQUESTS: usize = 8_000_000;

/// Iterations at which the growth of the peak is shown.
const GROWTH_AT: [usize; 12] = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];

/// The peaks of a job over several orders of lengths, with one allocator.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LengthRun {
    /// The allocator.
    pub setup: AllocatorSetup,
    /// Each order, by seed.
    pub orders: Vec<OrderPeaks>,
    /// Peak reserved memory over the orders.
    pub reserved: Quantiles,
    /// Peak allocated memory over the orders.
    pub allocated: Quantiles,
    /// The number of iterations after which no order had a new peak of reserved memory, over the orders.
    pub settled: Quantiles<usize>,
    /// The peak of reserved memory so far, by iteration.
    pub growth: Vec<GrowthPoint>,
    /// Peak reserved memory if all iterations have the greatest length.
    pub all_longest: Bytes,
    /// The number of orders that run on the device.
    pub fitting: usize,
    /// Peak reserved memory on the device, with cached memory released if need be, over the orders that run there; none if
    /// none does.
    pub on_device: Option<Quantiles>,
}

/// One order of lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderPeaks {
    /// The seed of the order; none if its lengths were given.
    pub seed: Option<u64>,
    /// Peak reserved memory, where the device has enough.
    pub reserved: Bytes,
    /// Peak allocated memory.
    pub allocated: Bytes,
    /// The number of iterations up to the last that reserved more than all before it.
    pub settled: usize,
    /// Returns whether the order runs on the device, if need be with cached memory released.
    pub fits: bool,
    /// Peak reserved memory on the device, if it runs there.
    pub on_device: Option<Bytes>,
    /// Peak reserved memory so far, after each iteration.
    pub by_iteration: Vec<Bytes>,
}

/// A distribution, by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles<T = Bytes> {
    /// The least.
    pub min: T,
    /// Half of the values are not above it.
    pub median: T,
    /// Of ten values, nine are not above it.
    pub p90: T,
    /// Of twenty values, nineteen are not above it.
    pub p95: T,
    /// The greatest.
    pub max: T,
}

/// The peak of reserved memory up to an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthPoint {
    /// The number of iterations.
    pub iterations: usize,
    /// The median over the orders.
    pub median: Bytes,
    /// The greatest.
    pub max: Bytes,
}

impl LengthModel<'_> {
    /// Simulates the job in each order of lengths with the allocator of `setup`. Peaks are those with enough
    /// device memory; each order is tried on the device as well.
    ///
    /// # Errors
    /// If a run has too many requests.
    pub fn run(
        &self,
        settings: &LengthSettings,
        setup: &AllocatorSetup,
    ) -> Result<LengthRun, LengthsError> {
        let seeds = match settings.exact {
            Some(_) => vec![None],
            None => {
                (0..settings.orders as u64).map(|at| Some(settings.seed.wrapping_add(at))).collect()
            }
        };
        let iterations = settings.exact.as_ref().map_or(settings.iterations, Vec::len);
        let steps = self.pattern.steps.len();
        if iterations.saturating_mul(steps) > MAX_REQUESTS {
            return Err(LengthsError::TooLong { iterations, steps, limit: MAX_REQUESTS });
        }
        let extents = &settings.varying.extents;
        let lengths = |seed: Option<u64>| match (&settings.exact, seed) {
            (Some(exact), _) => exact.clone(),
            (None, seed) => orders::draw(extents, iterations, seed.unwrap_or_default()),
        };
        let peaks = |seed| self.peaks(seed, &lengths(seed), &setup.choice);
        let orders = over(&seeds, &peaks);
        let longest = settings.exact.as_ref().unwrap_or(extents).iter().copied().max();
        let all_longest = vec![longest.unwrap_or_default(); iterations.min(4)];
        let all_longest = self.peaks(None, &all_longest, &setup.choice).reserved;
        let of =
            |value: fn(&OrderPeaks) -> Bytes| Quantiles::of(orders.iter().map(value).collect());
        Ok(LengthRun {
            setup: setup.clone(),
            reserved: of(|order| order.reserved),
            allocated: of(|order| order.allocated),
            settled: Quantiles::of(orders.iter().map(|order| order.settled).collect()),
            growth: growth(&orders, iterations),
            all_longest,
            fitting: orders.iter().filter(|order| order.fits).count(),
            on_device: {
                let on_device: Vec<Bytes> =
                    orders.iter().filter_map(|order| order.on_device).collect();
                (!on_device.is_empty()).then(|| Quantiles::of(on_device))
            },
            orders,
        })
    }

    /// The peaks of one order.
    fn peaks(&self, seed: Option<u64>, lengths: &[u64], allocator: &AllocatorChoice) -> OrderPeaks {
        let sequence = Sequence::new(self, lengths);
        let fallbacks = Workload::from(&[] as &[Request]).fallbacks;
        let work = Workload::new(&sequence.requests, fallbacks).with_calls(&sequence.calls);
        let device = self.prediction.device();
        let ample = device.without_limit();
        let over = allocator.over(Device::new(&ample), ());
        let mut driver = ReplayDriver::new(over, work);
        let (mut reserved, mut allocated) = (Bytes::ZERO, Bytes::ZERO);
        let mut by_iteration = Vec::with_capacity(sequence.ends.len());
        let mut from = 0;
        for &end in &sequence.ends {
            for (at, request) in (from..end).zip(&sequence.requests[from..end]) {
                driver.serve_lifting_limits(RequestIndex(at), request);
                reserved = reserved.max(driver.allocator().reserved());
                allocated = allocated.max(driver.allocator().allocated());
            }
            from = end;
            by_iteration.push(reserved);
        }
        let settled =
            by_iteration.iter().position(|&so_far| so_far == reserved).map_or(0, |at| at + 1);
        let is_ample = device.capacity.is_none_or(|capacity| reserved + device.taken <= capacity);
        let has_fraction = self.prediction.setup().memory_fraction.is_some();
        let on_device = if is_ample && !has_fraction {
            Some(reserved)
        } else {
            let there = outline(work, allocator, device, RequestIndex(0));
            there.fits.then_some(there.reserved)
        };
        let fits = on_device.is_some();
        OrderPeaks { seed, reserved, allocated, settled, fits, on_device, by_iteration }
    }
}

/// The results of the same work on each seed, in their order, at the same time where there are threads.
fn over(
    seeds: &[Option<u64>],
    work: &(impl Fn(Option<u64>) -> OrderPeaks + Sync),
) -> Vec<OrderPeaks> {
    match seeds {
        [] => Vec::new(),
        [seed] => vec![work(*seed)],
        _ => {
            let (one, other) = seeds.split_at(seeds.len() / 2);
            let (mut one, mut other) = both(|| over(one, work), || over(other, work));
            one.append(&mut other);
            one
        }
    }
}

fn growth(orders: &[OrderPeaks], iterations: usize) -> Vec<GrowthPoint> {
    let mut at: Vec<usize> = GROWTH_AT.into_iter().filter(|&at| at < iterations).collect();
    at.push(iterations);
    let points = at.into_iter().filter(|&at| at > 0).map(|at| {
        let so_far = Quantiles::of(orders.iter().map(|order| order.by_iteration[at - 1]).collect());
        GrowthPoint { iterations: at, median: so_far.median, max: so_far.max }
    });
    points.collect()
}

impl<T: Copy + Default + Ord> Quantiles<T> {
    fn of(mut values: Vec<T>) -> Self {
        values.sort_unstable();
        let at = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or_default()
        };
        Self { min: at(0), median: at(50), p90: at(90), p95: at(95), max: at(100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_by_rank() {
        let of = |values: std::ops::RangeInclusive<u64>| Quantiles::of(values.map(Bytes).collect());
        let bytes = |values: [u64; 5]| {
            let [min, median, p90, p95, max] = values.map(Bytes);
            Quantiles { min, median, p90, p95, max }
        };
        assert_eq!(of(1..=20), bytes([1, 10, 18, 19, 20]));
        assert_eq!(of(7..=7), bytes([7; 5]));
        assert_eq!(of(1..=3), bytes([1, 2, 3, 3, 3]));
    }
}
