//! `exact`: the lowest peak, by [complete searches](search) at several capacities.
//!
//! A search that takes long is given up and begun again in another order with more steps: if there is a plan,
//! an order leads to it almost at once or not in any time. Each round has four searches: three at the least peak that
//! may be possible, and one just below the best plan or on the way to it. They run in parallel, and each round
//! waits for all of them, so that the result does not depend on the number of threads.

mod ranks;
mod search;

use super::{Placed, multi};
use crate::budget::Budget;
use crate::instance::Instance;
use ranks::Orders;
use search::{Found, Search};
use xmem_parallel::both;

/// The most blocks: each step looks at all of them.
pub(crate) const MAX_BLOCKS: usize = 5000;

/// The searches of a round.
const SEARCHES: u64 = 4;

/// The steps of the shortest searches, for each block.
const STEPS_PER_BLOCK: f64 = 2.5;

/// The growth of the number of steps from round to round, where it is not in the series.
const GROWTH: f64 = 1.01;

/// The most blocks of a search that needs no stack of its own.
const MAX_ON_THIS_STACK: usize = 128;

/// The stack that a step may need, which is one more for each block.
const STACK_PER_BLOCK: usize = 2048;

pub(crate) fn place(instance: &Instance, seed: u64, budget: &mut Budget) -> Placed {
    let mut heuristic = budget.part(0.1);
    let best = multi::best(instance, seed, &mut heuristic);
    budget.take(heuristic.taken());
    improve(instance, best.offsets, seed, budget)
}

/// The best plan that can be found, from this one on.
pub(super) fn improve(
    instance: &Instance,
    offsets: Vec<u64>,
    seed: u64,
    budget: &mut Budget,
) -> Placed {
    let (reduced, unit) = instance.reduced();
    let mut offsets: Vec<u64> = offsets.into_iter().map(|offset| offset / unit).collect();
    let mut best = reduced.peak(&offsets);
    let orders = Orders::new(&reduced, seed);
    // No plan is lower than this.
    let mut least = reduced.lower_bound();
    let mut round = 0;
    while least < best && budget.left() >= SEARCHES && !budget.time_left().is_zero() {
        let below = best - 1;
        let higher = if round % 2 == 0 { below } else { least + (below - least) / 4 };
        let capacities = [least, least, least, higher];
        let steps = STEPS_PER_BLOCK * (reduced.blocks.len() as f64 + 1.0);
        let steps = steps * (luby(round + 1) as f64).max(GROWTH.powf(round as f64));
        let most = (steps as u64).min(budget.left() / SEARCHES);
        let stop = || budget.time_left().is_zero();
        let search = |which: u64| {
            let ranks = orders.ranks(round * SEARCHES + which);
            one_search(&reduced, &ranks, capacities[which as usize], most, &stop)
        };
        let ((one, two), (three, four)) =
            both(|| both(|| search(0), || search(1)), || both(|| search(2), || search(3)));
        let found = [one, two, three, four];
        budget.take(found.iter().map(|(_, nodes)| nodes).sum());
        for ((found, _), capacity) in found.into_iter().zip(capacities) {
            match found {
                Found::Plan(plan) => {
                    let peak = reduced.peak(&plan);
                    if peak < best {
                        (best, offsets) = (peak, plan);
                    }
                }
                Found::Nothing => least = least.max(capacity + 1),
                Found::Unknown => {}
            }
        }
        round += 1;
    }
    let offsets = offsets.into_iter().map(|offset| offset * unit).collect();
    Placed { offsets, searched: least >= best }
}

/// The `nth` number, from 1 on, of the series of Luby, Sinclair and Zuckerman ("Optimal speedup of Las Vegas algorithms",
/// 1993): 1, 1, 2, 1, 1, 2, 4, and so on.
const fn luby(nth: u64) -> u64 {
    let mut nth = nth;
    while !(nth + 1).is_power_of_two() {
        nth -= (1 << nth.ilog2()) - 1;
    }
    nth.div_ceil(2)
}

/// One search on a stack that is large enough for it, and its steps.
fn one_search(
    instance: &Instance,
    ranks: &[u32],
    capacity: u64,
    most: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> (Found, u64) {
    let run = || {
        let mut search = Search::new(instance, ranks, capacity, stop);
        (search.run(most), search.nodes())
    };
    if instance.blocks.len() <= MAX_ON_THIS_STACK {
        return run();
    }
    std::thread::scope(|scope| {
        let stack = (1 << 20) + instance.blocks.len() * STACK_PER_BLOCK;
        let thread = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, run);
        // Without a thread, nothing was searched.
        thread
            .map_or((Found::Unknown, 1), |thread| thread.join().expect("the search does not panic"))
    })
}
