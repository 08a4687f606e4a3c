//! `skyline-multi`: the [skyline](super::skyline) with many orders between "the longest-lived block first" and "the one
//! with the largest product of lifetime and size first", some with noise.

use super::Placed;
use super::skyline::{Bound, Skyline};
use crate::budget::Budget;
use crate::instance::{Instance, Item};
use std::cmp::{Ordering, Reverse};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The orders that are tried.
const PASSES: usize = 40;
/// The exponent of the size in the last of them.
const LARGEST_EXPONENT: f64 = 1.5;
/// The noise of every second order: lifetimes are multiplied by one more or less this, at most.
const NOISE: f64 = 0.1;
/// The passes that share the arrays of a skyline.
const SHARED: usize = 5;

/// Offsets. Passes run in parallel inside a pool of threads; of plans that are equally good, the first pass's is
/// the result.
pub(crate) fn place(instance: &Instance, seed: u64, budget: &mut Budget) -> Placed {
    Placed::heuristic(best(instance, seed, budget).offsets)
}

/// The best plan of all passes.
pub(crate) struct Best {
    pub(crate) peak: u64,
    pub(crate) offsets: Vec<u64>,
    /// The pass that found it.
    pub(crate) pass: usize,
}

/// The best plan of all passes, or of the first one if the budget has no step.
pub(crate) fn best(instance: &Instance, seed: u64, budget: &mut Budget) -> Best {
    let passes = Passes {
        instance,
        seed,
        budget: *budget,
        peak: AtomicU64::new(u64::MAX),
        last: AtomicUsize::new(usize::MAX),
    };
    let most = budget.left().min(PASSES as u64) as usize;
    let best = passes.run(0..most);
    // Others may have run beside those that matter.
    let last = passes.last.load(Relaxed).saturating_add(1);
    budget.take(last.min(most) as u64);
    best.unwrap_or_else(|| {
        let mut skyline = Skyline::new(instance);
        let outcome = skyline.place(&order(instance, 0, seed), &Bound::NONE).expect("no bound");
        Best { peak: outcome.peak, offsets: skyline.offsets().to_vec(), pass: 0 }
    })
}

/// The blocks by preference in a pass.
pub(crate) fn order(instance: &Instance, pass: usize, seed: u64) -> Vec<u32> {
    let exponent = LARGEST_EXPONENT * (pass / 2) as f64 / (PASSES / 2 - 1) as f64;
    let noise = if pass.is_multiple_of(2) { 0.0 } else { NOISE };
    let mut random = fastrand::Rng::with_seed(seed.wrapping_add(pass as u64));
    // Sizes in units of the largest: the same for a list of larger blocks.
    let largest = instance.blocks.iter().map(|item| item.size).max().unwrap_or(1) as f64;
    let key = |item: &Item| {
        let factor = 1.0 + noise * (2.0 * random.f64() - 1.0);
        f64::from(item.requests) * (item.size as f64 / largest).powf(exponent) * factor
    };
    let keys: Vec<f64> = instance.blocks.iter().map(key).collect();
    let mut order: Vec<u32> = (0..instance.blocks.len() as u32).collect();
    order.sort_by(|&one, &other| {
        let item = |block: u32| {
            let item = &instance.blocks[block as usize];
            (Reverse(item.size), item.start, block)
        };
        let keys = keys[other as usize].partial_cmp(&keys[one as usize]);
        keys.unwrap_or(Ordering::Equal).then_with(|| item(one).cmp(&item(other)))
    });
    order
}

struct Passes<'a> {
    instance: &'a Instance,
    seed: u64,
    budget: Budget,
    /// The lowest peak so far: a pass ends when it is above.
    peak: AtomicU64,
    /// The first pass so far that reached the lower bound: those after it do not matter.
    last: AtomicUsize,
}

impl Passes<'_> {
    fn run(&self, passes: Range<usize>) -> Option<Best> {
        if passes.len() > SHARED {
            let middle = passes.start + passes.len() / 2;
            let (one, other) = xmem_parallel::both(
                || self.run(passes.start..middle),
                || self.run(middle..passes.end),
            );
            return match (one, other) {
                (Some(one), Some(other)) => Some(if other.peak < one.peak { other } else { one }),
                (one, other) => one.or(other),
            };
        }
        let (mut skyline, mut best) = (Skyline::new(self.instance), None);
        for pass in passes {
            let is_over = pass > 0 && self.budget.time_left().is_zero();
            if pass > self.last.load(Relaxed) || is_over {
                break;
            }
            let order = order(self.instance, pass, self.seed);
            // The first pass is completed, so that there is a plan.
            let deadline = (pass > 0).then(|| self.budget.deadline());
            let bound = Bound { deadline, ..Bound::peak(self.peak.load(Relaxed)) };
            let Some(outcome) = skyline.place(&order, &bound) else { continue };
            self.peak.fetch_min(outcome.peak, Relaxed);
            if outcome.peak == self.instance.lower_bound() {
                self.last.fetch_min(pass, Relaxed);
            }
            if best.as_ref().is_none_or(|best: &Best| outcome.peak < best.peak) {
                let offsets = skyline.offsets().to_vec();
                best = Some(Best { peak: outcome.peak, offsets, pass });
            }
        }
        best
    }
}
