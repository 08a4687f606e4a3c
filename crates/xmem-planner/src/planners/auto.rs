//! `auto`: one planner after the other, until a plan is known to be optimal or the time is over.

use super::{Fit, GreedyOrder, Placed, bestfit, exact, greedy, ils, multi};
use crate::budget::Budget;
use crate::instance::Instance;
use xmem_parallel::both;

/// The most blocks for planners that look at all pairs of them.
const MAX_FOR_GREEDY: usize = 20_000;

/// The most blocks for the complete search.
const MAX_FOR_EXACT: usize = 2000;

pub(crate) fn place(instance: &Instance, seed: u64, budget: &mut Budget) -> Placed {
    let lower_bound = instance.lower_bound();
    let mut best = bestfit::place(instance);
    let better = |one: Placed, other: Placed| {
        if instance.peak(&other.offsets) < instance.peak(&one.offsets) { other } else { one }
    };
    let done = |placed: &Placed| instance.peak(&placed.offsets) == lower_bound;
    if done(&best) {
        return best;
    }
    if instance.blocks.len() <= MAX_FOR_GREEDY {
        let part = budget.part(0.3);
        for (fit, order) in [
            (Fit::Best, GreedyOrder::SizeBirth),
            (Fit::First, GreedyOrder::SizeBirth),
            (Fit::Best, GreedyOrder::Size),
            (Fit::First, GreedyOrder::Size),
        ] {
            let Some(placed) = greedy::place(instance, fit, order, &part) else { break };
            best = better(best, placed);
            if done(&best) {
                return best;
            }
        }
    }
    let mut part = budget.part(0.3);
    best = better(best, multi::place(instance, seed, &mut part));
    budget.take(part.taken());
    if done(&best) {
        return best;
    }
    if instance.blocks.len() <= MAX_FOR_EXACT {
        let mut part = budget.part(0.7);
        best = exact::improve(instance, best.offsets, seed, &mut part);
        budget.take(part.taken());
        if best.searched {
            return best;
        }
    }
    // Each has all the time that is left: they run at the same time, and where there is one thread, the second finds none
    // left.
    let (mut first, mut second) = (budget.half_of_steps(), budget.half_of_steps());
    let (one, other) = both(
        || ils::place(instance, seed, &mut first),
        || ils::place(instance, seed.wrapping_add(1), &mut second),
    );
    budget.take(first.taken() + second.taken());
    better(best, better(one, other))
}
