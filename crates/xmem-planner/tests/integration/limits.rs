//! Planners whose time is over.

use crate::lists;

use std::time::Duration;
use xmem_planner::{BlockList, Limits, PlannedBlock, Planner, Refused, plan};

#[test]
fn a_planner_without_time_gives_a_plan_or_says_that_it_found_none() {
    assert!(lists::MINIMALLOC.iter().all(|(_, text)| lists::minimalloc(text).len() > 100));
    let training = lists::training(5000, 3);
    let made = |(id, block): (usize, &PlannedBlock)| PlannedBlock {
        operator: Some(id as u32 / 4),
        ..*block
    };
    let blocks = training.blocks().iter().enumerate().map(made).collect();
    let list = BlockList::new(blocks).expect("a list");
    let limits = Limits { time: Duration::ZERO, ..Limits::default() };
    for (name, gives_a_plan) in [
        ("bump", true),
        ("bestfit", true),
        ("skyline-multi", true),
        ("skyline-ils", true),
        ("exact", true),
        ("auto", true),
        ("greedy-by-size", false),
        ("greedy-by-size:first:area", false),
        ("greedy-by-breadth", false),
        ("gergov", false),
    ] {
        let planner: Planner = name.parse().expect(name);
        match plan(&list, planner, &limits) {
            Ok(_) => assert!(gives_a_plan, "{name}"),
            Err(Refused::TooManyBlocks { .. }) => assert_eq!(name, "exact"),
            Err(refused) => {
                assert_eq!((refused, gives_a_plan), (Refused::NotFound { planner }, false));
            }
        }
    }
}
