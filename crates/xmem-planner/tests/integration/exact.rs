//! The exact planner against a search of a few lines, and on lists whose optimum is known.

use crate::lists;

use lists::{MINIMALLOC, minimalloc};
use std::time::Duration;
use xmem_planner::{BlockList, Limits, PlannedBlock, Planner, Proof, plan};
use xmem_types::Bytes;

/// A time that no test reaches.
const NO_LIMIT: Limits = Limits { time: Duration::from_secs(3600), nodes: None, seed: 1 };

/// The lowest peak: each block in turn at the lowest offset at which it fits, in every order.
fn lowest_peak(blocks: &[PlannedBlock], bound: u64) -> u64 {
    fn place(
        blocks: &[PlannedBlock],
        placed: &mut Vec<(PlannedBlock, u64)>,
        peak: u64,
        bound: u64,
        best: &mut u64,
    ) {
        if peak >= *best || *best == bound {
            return;
        }
        if placed.len() == blocks.len() {
            *best = peak;
        }
        for &block in blocks {
            if placed.iter().any(|(other, _)| other.operator == block.operator) {
                continue;
            }
            let conflicts: Vec<(u64, u64)> = placed
                .iter()
                .filter(|(other, _)| other.overlaps_in_time(&block))
                .map(|(other, offset)| (*offset, offset + other.size.get()))
                .collect();
            let free = |&low: &u64| {
                conflicts.iter().all(|&(start, end)| low >= end || low + block.size.get() <= start)
            };
            let ends = conflicts.iter().map(|&(_, end)| end);
            let low = ends.chain([0]).filter(free).min().expect("above all others");
            placed.push((block, low));
            place(blocks, placed, peak.max(low + block.size.get()), bound, best);
            placed.pop();
        }
    }
    let mut best = u64::MAX;
    place(blocks, &mut Vec::new(), 0, bound, &mut best);
    best
}

fn list(blocks: &[(u64, u32, u32)]) -> BlockList {
    // The operator is the block's number, by which the naive search knows it again.
    let block = |(number, &(size, start, end)): (usize, &(u64, u32, u32))| PlannedBlock {
        size: Bytes(size),
        start,
        end,
        operator: Some(number as u32),
    };
    BlockList::new(blocks.iter().enumerate().map(block).collect()).expect("a list")
}

/// Checks one list: true if there is no plan at the lower bound, so that the proof is a search.
fn compare(planner: Planner, blocks: &[(u64, u32, u32)]) -> bool {
    let list = list(blocks);
    let planned = plan(&list, planner, &NO_LIMIT).expect("a plan");
    let lowest = lowest_peak(list.blocks(), list.lower_bound().get());
    assert_eq!(planned.plan.peak(), Bytes(lowest), "{blocks:?}");
    assert!(planned.is_optimal(), "{blocks:?}");
    planned.proof == Some(Proof::Search)
}

/// Lists whose lowest peak is above the lower bound: one of millions of random lists of this size.
const ABOVE_THE_BOUND: [&[(u64, u32, u32)]; 2] = [
    &[(3, 0, 2), (1, 2, 6), (1, 1, 4), (3, 5, 6), (1, 2, 4), (1, 1, 3), (2, 4, 5), (2, 3, 5)],
    &[
        (6, 0, 6),
        (2, 1, 3),
        (4, 2, 5),
        (3, 1, 5),
        (2, 5, 6),
        (5, 5, 6),
        (6, 0, 1),
        (5, 3, 6),
        (5, 0, 2),
    ],
];

/// Compares the plans of 10,000 lists.
fn compare_small_lists(planner: Planner) {
    let mut random = fastrand::Rng::with_seed(11);
    let mut block = |ticks: u32, most: u64| {
        let start = random.u32(0..ticks);
        (random.u64(1..=most), start, random.u32(start + 1..=ticks))
    };
    for round in 0..9_000 {
        let (count, ticks, most) = (1 + round % 7, 2 + round as u32 % 8, [3, 9, 40][round % 3]);
        let blocks: Vec<_> = (0..count).map(|_| block(ticks, most)).collect();
        compare(planner, &blocks);
    }
    // Near a list without a plan at the lower bound, others are.
    let mut above = 0;
    for round in 0..1_000 {
        let mut blocks = ABOVE_THE_BOUND[0].to_vec();
        let scale = 1 + round as u64 % 5;
        blocks.iter_mut().for_each(|block| block.0 *= scale);
        blocks[round % 8] = block(6, 3 * scale);
        above += usize::from(compare(planner, &blocks));
    }
    assert!(above > 20, "{above} without a plan at the lower bound");
}

#[test]
fn exact_plans_of_10_000_small_lists_have_the_lowest_peak() {
    compare_small_lists(Planner::Exact);
}

#[test]
fn programs_of_10_000_small_lists_have_the_lowest_peak() {
    compare_small_lists(Planner::Mip);
}

/// Two ways that have nothing in common but the heuristic plan that they begin with.
#[test]
fn a_mixed_integer_program_has_the_peak_of_the_exact_plan() {
    let prefix = |(_, text): (&str, &[u8]), count: usize| {
        BlockList::new(minimalloc(text).blocks()[..count].to_vec()).expect("a list")
    };
    let mut lists: Vec<BlockList> = ABOVE_THE_BOUND.into_iter().map(list).collect();
    lists.extend(MINIMALLOC.map(|instance| prefix(instance, 12)));
    for list in lists {
        let peaks = [Planner::Mip, Planner::Exact].map(|planner| {
            let planned = plan(&list, planner, &NO_LIMIT).expect("a plan");
            (planned.plan.peak(), planned.is_optimal())
        });
        assert!(peaks[0] == peaks[1] && peaks[0].1, "{peaks:?} of {:?}", list.blocks());
    }
}

#[test]
fn a_lowest_peak_above_the_lower_bound_is_proven() {
    for blocks in ABOVE_THE_BOUND {
        assert!(compare(Planner::Exact, blocks), "{blocks:?}");
        let planned = plan(&list(blocks), Planner::Auto, &NO_LIMIT).expect("a plan");
        assert_eq!(planned.proof, Some(Proof::Search), "auto proves it, too");
    }
}

/// The instances that take moments; those that take half a minute are in the documentation of plans.
#[test]
fn exact_finds_plans_of_minimalloc_instances_at_the_lower_bound() {
    let limits = Limits { nodes: Some(100_000), ..NO_LIMIT };
    for (name, text) in MINIMALLOC.into_iter().filter(|(name, _)| ["C", "K"].contains(name)) {
        for planner in [Planner::Exact, Planner::Auto] {
            let planned = plan(&minimalloc(text), planner, &limits).expect("a plan");
            assert_eq!(planned.proof, Some(Proof::LowerBound), "{planner} on {name}");
        }
    }
}

/// The searches of a round run at the same time, and so do the local searches of `auto`.
#[test]
fn the_number_of_threads_does_not_change_a_plan() {
    let limits = Limits { nodes: Some(5_000), ..NO_LIMIT };
    for planner in [Planner::Exact, Planner::Auto] {
        let plans = |threads: usize| {
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let plan = |(_, text)| {
                let planned = plan(&minimalloc(text), planner, &limits).expect("a plan");
                (planned.plan, planned.nodes)
            };
            pool.install(|| MINIMALLOC.map(plan))
        };
        assert!(plans(1) == plans(4), "{planner}: four threads give what one gives");
    }
}

#[test]
fn auto_plans_a_training_job_at_its_lower_bound() {
    let planned = plan(&lists::training(3000, 9), Planner::Auto, &NO_LIMIT).expect("a plan");
    assert_eq!(planned.proof, Some(Proof::LowerBound));
}
