//! `skyline-ils`: a local search for the order in which the [skyline](super::skyline) gives the best plan.
//!
//! It begins with the best order of [`skyline-multi`](super::multi). A step moves a block to another place of the order, or
//! swaps two; half of the steps take a block that lives where the plan is too high. Peaks of neighbors are mostly equal, so
//! that plans are compared by how much their sections exceed a target in sum; the target lies between the lower
//! bound and the best peak, and sinks with it. Worse plans are accepted as in simulated annealing, in epochs
//! that cool down and begin again from the best plan of the last. After some epochs without a lower peak, the search begins
//! again from the first order.

use super::skyline::{Bound, Outcome, Skyline};
use super::{Placed, multi};
use crate::budget::Budget;
use crate::instance::Instance;
use fastrand::Rng;

/// The steps of an epoch.
const EPOCH: u32 = 20_000;
/// The epochs without a lower peak after which the search begins again from the first order.
const STALLED: u32 = 3;
/// The mean excess that is accepted at the beginning of an epoch, in units of the present one.
const TEMPERATURE: f64 = 0.01;
/// The target, as a part of the way from the lower bound to the best peak. A list whose bound cannot be reached
/// would lead astray with the bound as its target.
const TARGET: (u64, u64) = (4, 5);
/// The probability that a step moves a block that lives where the plan is too high.
const HIGH: f64 = 0.5;
/// The probability that a block moves by a part of the order, [`FAR`] at most, and not to any place.
const NEAR: f64 = 0.3;
/// The part of the order.
const FAR: f64 = 0.2;
/// The probability that a step swaps two blocks.
const SWAP: f64 = 0.3;
/// The blocks that are drawn to find one that lives at some section.
const DRAWS: usize = 64;

/// The best plan that a search finds within its budget. It is the same for the same seed if the steps are limited.
pub(crate) fn place(instance: &Instance, seed: u64, budget: &mut Budget) -> Placed {
    // In units of the greatest common divisor, larger blocks are no other list.
    let (instance, unit) = instance.reduced();
    let mut best = multi::best(&instance, seed, budget);
    if best.peak > instance.lower_bound() {
        let order = multi::order(&instance, best.pass, seed);
        Search::new(&instance, &order, &mut best, seed).run(budget);
    }
    Placed::heuristic(best.offsets.into_iter().map(|offset| offset * unit).collect())
}

struct Search<'a> {
    instance: &'a Instance,
    skyline: Skyline<'a>,
    best: &'a mut multi::Best,
    /// The order with which the search begins, and its peak.
    first: (&'a [u32], u64),
    /// The lowest peak since the search began, or began again.
    lowest: u64,
    random: Rng,
    target: u64,
    order: Vec<u32>,
    present: Outcome,
    /// The sections that exceed the target in the present plan.
    high: Vec<u32>,
    /// The best order of the epoch, with its excess.
    epoch: (Vec<u32>, u128),
}

/// A change of an order.
#[derive(Clone, Copy)]
enum Step {
    Swap(usize, usize),
    Move { from: usize, to: usize },
}

impl<'a> Search<'a> {
    fn new(instance: &'a Instance, first: &'a [u32], best: &'a mut multi::Best, seed: u64) -> Self {
        let mut search = Self {
            instance,
            skyline: Skyline::new(instance),
            target: 0,
            random: Rng::with_seed(seed),
            present: Outcome { peak: 0, excess: 0 },
            high: Vec::new(),
            epoch: (Vec::new(), 0),
            order: first.to_vec(),
            first: (first, best.peak),
            lowest: best.peak,
            best,
        };
        search.aim();
        search
    }

    /// Steps until the lower bound is reached, or the budget is spent.
    fn run(&mut self, budget: &mut Budget) {
        let bound = self.instance.lower_bound();
        let (mut step, mut epochs) = (0, 0);
        while self.best.peak > bound && budget.step() {
            step += 1;
            if step == EPOCH {
                (step, epochs) = (0, epochs + 1);
                if epochs == STALLED {
                    epochs = 0;
                    self.order.copy_from_slice(self.first.0);
                    self.lowest = self.first.1;
                } else {
                    self.order.copy_from_slice(&self.epoch.0);
                }
                self.aim();
            }
            let temperature = TEMPERATURE * f64::from(EPOCH - step) / f64::from(EPOCH);
            if self.step(temperature) {
                epochs = 0;
            }
        }
    }

    /// Takes the target from the lowest peak, and begins an epoch with the present order.
    fn aim(&mut self) {
        let bound = self.instance.lower_bound();
        let above = u128::from(self.lowest - bound) * u128::from(TARGET.0) / u128::from(TARGET.1);
        self.target = bound + above as u64;
        let plan = self.skyline.place(&self.order, &self.accepting(u128::MAX));
        self.present = plan.expect("a plan without a bound");
        self.look();
        self.epoch = (self.order.clone(), self.present.excess);
    }

    const fn accepting(&self, excess: u128) -> Bound {
        Bound { target: self.target, excess, ..Bound::NONE }
    }

    /// Notes where the last plan is too high.
    fn look(&mut self) {
        let tops = self.skyline.tops().iter().enumerate();
        let high = tops.filter(|&(_, &top)| top > self.target);
        self.high.clear();
        self.high.extend(high.map(|(section, _)| section as u32));
    }

    /// Takes a step; true if it leads to a lower peak.
    fn step(&mut self, temperature: f64) -> bool {
        let step = self.draw();
        step.apply(&mut self.order);
        let worse = -self.random.f64().max(f64::MIN_POSITIVE).ln() * temperature;
        let worse = (worse * self.present.excess as f64) as u128;
        let bound = self.accepting(self.present.excess.saturating_add(worse));
        let Some(outcome) = self.skyline.place(&self.order, &bound) else {
            step.undo(&mut self.order);
            return false;
        };
        self.present = outcome;
        if outcome.peak < self.lowest {
            self.lowest = outcome.peak;
            if outcome.peak < self.best.peak {
                self.best.peak = outcome.peak;
                self.best.offsets.copy_from_slice(self.skyline.offsets());
            }
            self.aim();
            return true;
        }
        self.look();
        if outcome.excess < self.epoch.1 {
            self.epoch.0.clone_from(&self.order);
            self.epoch.1 = outcome.excess;
        }
        false
    }

    fn draw(&mut self) -> Step {
        let blocks = self.order.len();
        let from = self.block();
        let to = if self.random.f64() < NEAR {
            let far = self.random.f64() * self.random.f64() * FAR * blocks as f64;
            let by = 1 + far as usize;
            if self.random.bool() { from.saturating_sub(by) } else { (from + by).min(blocks - 1) }
        } else {
            self.random.usize(0..blocks)
        };
        if self.random.f64() < SWAP { Step::Swap(from, to) } else { Step::Move { from, to } }
    }

    /// A place in the order.
    fn block(&mut self) -> usize {
        let mut place = self.random.usize(0..self.order.len());
        if self.random.f64() < HIGH && !self.high.is_empty() {
            let section = self.high[self.random.usize(0..self.high.len())];
            for _ in 0..DRAWS {
                let item = &self.instance.blocks[self.order[place] as usize];
                if item.start <= section && section < item.end {
                    break;
                }
                place = self.random.usize(0..self.order.len());
            }
        }
        place
    }
}

impl Step {
    fn apply(self, order: &mut [u32]) {
        match self {
            Self::Swap(one, other) => order.swap(one, other),
            Self::Move { from, to } if from < to => order[from..=to].rotate_left(1),
            Self::Move { from, to } => order[to..=from].rotate_right(1),
        }
    }

    fn undo(self, order: &mut [u32]) {
        match self {
            Self::Swap(..) => self.apply(order),
            Self::Move { from, to } => Self::Move { from: to, to: from }.apply(order),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_can_be_undone() {
        let order: Vec<u32> = (0..6).collect();
        for (step, expected) in [
            (Step::Swap(1, 4), [0, 4, 2, 3, 1, 5]),
            (Step::Move { from: 1, to: 4 }, [0, 2, 3, 4, 1, 5]),
            (Step::Move { from: 4, to: 1 }, [0, 4, 1, 2, 3, 5]),
            (Step::Move { from: 3, to: 3 }, [0, 1, 2, 3, 4, 5]),
        ] {
            let mut changed = order.clone();
            step.apply(&mut changed);
            assert_eq!(changed, expected);
            step.undo(&mut changed);
            assert_eq!(changed, order);
        }
    }
}
