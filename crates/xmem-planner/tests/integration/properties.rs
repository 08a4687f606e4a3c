//! Properties of all planners, on random lists. That no two blocks overlap is checked by `plan` itself, with
//! [`check`](xmem_planner::check), which has its own test.

use proptest::prelude::*;
use std::time::Duration;
use xmem_planner::{BlockList, Limits, Planned, PlannedBlock, Planner, plan};
use xmem_types::Bytes;

/// A limit that no search on a short list needs, and that the clock does not reach first.
const LIMITS: Limits = Limits { time: Duration::from_secs(600), nodes: Some(200), seed: 7 };

fn blocks() -> impl Strategy<Value = Vec<PlannedBlock>> {
    let blocks = |ticks: u32, size: u64, most: usize| {
        let block =
            (0..=size, 0..ticks, 1..=ticks, 0u32..5).prop_map(|(size, start, length, op)| {
                PlannedBlock { size: Bytes(size), start, end: start + length, operator: Some(op) }
            });
        prop::collection::vec(block, 0..most)
    };
    prop_oneof![blocks(5, 4, 10), blocks(30, 1000, 40)]
}

fn planned(blocks: &[PlannedBlock], planner: Planner) -> Planned {
    let list = BlockList::new(blocks.to_vec()).expect("a list");
    plan(&list, planner, &LIMITS).unwrap_or_else(|refused| panic!("{planner}: {refused}"))
}

/// All but the solver of integer programs, which knows no limit on steps and takes no list of this length.
fn planners() -> impl Iterator<Item = Planner> {
    let names = Planner::names().filter(|&name| name != "mip");
    names.map(|name| name.parse().expect(name))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn plans_are_valid_and_not_below_the_bound(blocks in blocks()) {
        for planner in planners() {
            let planned = planned(&blocks, planner);
            prop_assert!(planned.plan.peak() >= planned.lower_bound, "{}", planner);
            let total = blocks.iter().map(|block| block.size).sum::<Bytes>();
            // Gergov's colors may leave memory empty.
            prop_assert!(planner == Planner::Gergov || planned.plan.peak() <= total, "{}", planner);
        }
    }

    #[test]
    fn the_same_list_gives_the_same_plan(blocks in blocks()) {
        for planner in planners() {
            prop_assert_eq!(planned(&blocks, planner).plan, planned(&blocks, planner).plan, "{}", planner);
        }
    }

    #[test]
    fn later_slower_or_larger_changes_nothing(
        blocks in blocks(), shift in 0u32..1000, slower in 1u32..5, larger in 1u64..5
    ) {
        let change = |block: &PlannedBlock| PlannedBlock {
            size: Bytes(block.size.get() * larger),
            start: block.start * slower + shift,
            end: block.end * slower + shift,
            operator: block.operator,
        };
        let changed: Vec<PlannedBlock> = blocks.iter().map(change).collect();
        for planner in planners() {
            let (one, other) = (planned(&blocks, planner), planned(&changed, planner));
            let scaled = one.plan.offsets().iter().map(|offset| Bytes(offset.get() * larger));
            prop_assert_eq!(scaled.collect::<Vec<_>>(), other.plan.offsets(), "{}", planner);
        }
    }
}

/// The bound of Gergov's paper is for lists of any kind, and random ones do not come near it.
#[test]
fn gergov_is_within_three_times_the_bound() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let within = runner.run(&blocks(), |blocks| {
        let planned = planned(&blocks, Planner::Gergov);
        prop_assert!(planned.ratio() <= 3.0, "{}", planned.ratio());
        Ok(())
    });
    within.expect("within three times the bound");
}

/// The first pass of `skyline-multi` is `bestfit`, and the search starts with the passes.
#[test]
fn more_passes_are_not_worse() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let ordered = runner.run(&blocks(), |blocks| {
        let peaks = [Planner::SkylineIls, Planner::SkylineMulti, Planner::BestFit]
            .map(|planner| planned(&blocks, planner).plan.peak());
        prop_assert!(peaks.is_sorted(), "{:?}", peaks);
        Ok(())
    });
    ordered.expect("search <= passes <= one pass");
}
