//! `mip`: a mixed integer program (MemoMalloc, equation 2.1; Sekiyama et al., equations 1 to 6), solved by microlp, or
//! by HiGHS where xmem is built with it.
//!
//! An offset for each block, the peak, and for each pair of blocks that conflict a binary variable that says which one is
//! below. The largest offset that appears in a constraint is the peak of the best heuristic plan, in units of the greatest
//! common divisor of the sizes. It proves nothing that [`exact`](super::exact) does not prove faster, and checks it.

use super::{Placed, multi};
use crate::budget::Budget;
use crate::instance::Instance;
#[cfg(not(feature = "highs"))]
use good_lp::microlp as solver;
use good_lp::{
    ProblemVariables, Solution, SolutionStatus, SolverModel, Variable, WithInitialSolution,
    WithTimeLimit, constraint, variable,
};

/// The most blocks for HiGHS: beyond, it finds no plan at all in reasonable time.
pub(crate) const MAX_BLOCKS_OF_HIGHS: usize = 120;

/// The most blocks.
pub(crate) const MAX_BLOCKS: usize = if cfg!(feature = "highs") { MAX_BLOCKS_OF_HIGHS } else { 40 };

/// The largest peak, in units of the divisor, up to which the solver's tolerance (1e-6) does not matter.
const MAX_PROVEN_PEAK: u64 = 1 << 20;

pub(crate) fn place(instance: &Instance, seed: u64, budget: &Budget) -> Placed {
    let mut passes = *budget;
    let heuristic = multi::best(instance, seed, &mut passes).offsets;
    let (reduced, unit) = instance.reduced();
    let heuristic: Vec<u64> = heuristic.into_iter().map(|offset| offset / unit).collect();
    let (best, bound) = (reduced.peak(&heuristic), reduced.lower_bound());
    let solved = (best > bound).then(|| solve(&reduced, &heuristic, best, budget)).flatten();
    let (offsets, searched) = match solved {
        Some((offsets, optimal)) if reduced.peak(&offsets) <= best => (offsets, optimal),
        _ => (heuristic, false),
    };
    let offsets = offsets.into_iter().map(|offset| offset * unit).collect();
    Placed { offsets, searched: searched && best <= MAX_PROVEN_PEAK }
}

/// HiGHS, which else is content with a gap of 1e-4.
#[cfg(feature = "highs")]
fn solver(problem: good_lp::variable::UnsolvedProblem) -> good_lp::solvers::highs::HighsProblem {
    good_lp::highs(problem).set_mip_rel_gap(0.0).expect("zero is not negative")
}

/// The solver's plan, and whether it is optimal.
fn solve(
    instance: &Instance,
    heuristic: &[u64],
    best: u64,
    budget: &Budget,
) -> Option<(Vec<u64>, bool)> {
    let blocks = &instance.blocks;
    let most = best as f64;
    let mut variables = ProblemVariables::new();
    let mut number =
        |least: u64, most: u64| variables.add(variable().min(least as f64).max(most as f64));
    let peak = number(instance.lower_bound(), best);
    let offsets: Vec<Variable> = blocks.iter().map(|item| number(0, best - item.size)).collect();
    let mut initial: Vec<(Variable, f64)> = vec![(peak, most)];
    initial.extend(offsets.iter().zip(heuristic).map(|(&offset, &at)| (offset, at as f64)));
    let mut pairs = Vec::new();
    for one in 0..blocks.len() {
        for other in (0..one).filter(|&other| blocks[other].conflicts(&blocks[one])) {
            let above = variables.add(variable().binary());
            initial.push((above, f64::from(u8::from(heuristic[one] > heuristic[other]))));
            pairs.push((one, other, above));
        }
    }
    let mut model = variables
        .minimise(peak)
        .using(solver)
        .with_time_limit(budget.time_left().as_secs_f64())
        .with_initial_solution(initial);
    for (item, &offset) in blocks.iter().zip(&offsets) {
        model.add_constraint(constraint!(offset + item.size as f64 <= peak));
    }
    for (one, other, above) in pairs {
        let (low, high) = (offsets[one], offsets[other]);
        let (size, other_size) = (blocks[one].size as f64, blocks[other].size as f64);
        model.add_constraint(constraint!(low + size <= high + most * above));
        model.add_constraint(constraint!(high + other_size <= low + most - most * above));
    }
    let solution = model.solve().ok()?;
    let at: Vec<f64> = offsets.iter().map(|&offset| solution.value(offset)).collect();
    let optimal = matches!(solution.status(), SolutionStatus::Optimal);
    Some((lowered(instance, &at), optimal))
}

/// Whole offsets in the order of these: each block right above what it lies on.
fn lowered(instance: &Instance, at: &[f64]) -> Vec<u64> {
    let blocks = &instance.blocks;
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by(|&one, &other| at[one].total_cmp(&at[other]));
    let mut offsets = vec![0; blocks.len()];
    for (nth, &block) in order.iter().enumerate() {
        let below = order[..nth].iter().filter(|&&other| blocks[other].conflicts(&blocks[block]));
        offsets[block] = below.map(|&other| offsets[other] + blocks[other].size).max().unwrap_or(0);
    }
    offsets
}
