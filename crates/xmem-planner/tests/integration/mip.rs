//! The mixed integer program against the complete search, on lists that the skyline does not plan at their lower bound.
#![cfg(feature = "mip")]

use std::time::Duration;
use xmem_planner::{BlockList, Limits, PlannedBlock, Planner, Refused, plan};
use xmem_types::Bytes;

const LIMITS: Limits = Limits { time: Duration::from_secs(300), nodes: None, seed: 1 };

/// The most blocks that the solver takes.
const MAX_BLOCKS: usize = if cfg!(feature = "highs") { 120 } else { 40 };

/// Lists of some blocks each, one after the other in time, none of which the skyline plans at its bound.
fn hard(lists: usize, blocks: usize, seed: u64) -> BlockList {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut all: Vec<PlannedBlock> = Vec::new();
    while all.len() < lists * blocks {
        let from = (100 * all.len() / blocks) as u32;
        let drawn = (0..blocks).map(|_| {
            let (start, ticks) = (from + random.u32(0..12), random.u32(1..8));
            PlannedBlock {
                size: Bytes(random.u64(1..10)),
                start,
                end: start + ticks,
                operator: None,
            }
        });
        let drawn: Vec<PlannedBlock> = drawn.collect();
        let list = BlockList::new(drawn.clone()).expect("a list");
        let planned = plan(&list, Planner::SkylineMulti, &LIMITS).expect("a plan");
        if planned.plan.peak() > list.lower_bound() {
            all.extend(drawn);
        }
    }
    BlockList::new(all).expect("a list")
}

fn check(list: &BlockList) {
    let [program, search] =
        [Planner::Mip, Planner::Exact].map(|planner| plan(list, planner, &LIMITS).expect("a plan"));
    assert!(program.is_optimal() && search.is_optimal(), "{list:?}");
    assert_eq!(program.plan.peak(), search.plan.peak(), "{list:?}");
}

#[test]
fn the_program_and_the_search_come_to_the_same_peak() {
    for seed in 0..12 {
        check(&hard(1, 9, seed));
    }
}

#[test]
fn lists_are_refused_that_the_solver_does_not_manage() {
    let list = hard(MAX_BLOCKS / 9 + 1, 9, 0);
    let refused = plan(&list, Planner::Mip, &LIMITS).expect_err("too long");
    let blocks = list.len();
    assert_eq!(refused, Refused::TooManyBlocks { planner: Planner::Mip, most: MAX_BLOCKS, blocks });
    // What HiGHS would take is said where it is not there.
    assert_eq!(refused.to_string().contains("feature highs"), MAX_BLOCKS == 40, "{refused}");
    let longer = plan(&hard(14, 9, 0), Planner::Mip, &LIMITS).expect_err("too long");
    assert!(!longer.to_string().contains("feature"), "{longer}");
}

/// microlp takes at most 40 blocks.
#[cfg(feature = "highs")]
#[test]
fn highs_proves_plans_of_longer_lists() {
    for seed in 0..4 {
        check(&hard(6, 9, seed));
    }
}
