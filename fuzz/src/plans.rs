//! What the fuzz targets of tables and plans check.

use xmem_report::json::{self, HintsDocument, read_hints};
use xmem_studies::planner::{Limits, Planner, read_csv};
use xmem_studies::planning::{FollowInput, PlanBlocks};

/// Blocks of a table that are planned; the time of a longer one shows nothing new.
const MAX_BLOCKS: usize = 300;

/// Reading a table ends, and what is read has a plan that is at least the lower bound; plans are checked for overlaps where
/// they are made.
pub(crate) fn table(data: &[u8]) {
    let Ok(table) = read_csv(data) else { return };
    assert_eq!(table.list.len(), table.names.len());
    if table.list.len() > MAX_BLOCKS {
        return;
    }
    let blocks = PlanBlocks::of_table(table);
    let limits = Limits { nodes: Some(50), ..Limits::default() };
    for name in ["bestfit", "greedy-by-size", "skyline-multi", "gergov"] {
        let planner: Planner = name.parse().expect("a planner");
        let planned = xmem_studies::planner::plan(&blocks.list, planner, &limits);
        let planned = planned.unwrap_or_else(|refused| panic!("{name}: {refused}"));
        assert!(planned.plan.peak() >= blocks.list.lower_bound(), "{name}");
    }
}

/// Reading a plan ends; what is read is written so that it is read again, and can be followed or is refused.
pub(crate) fn hints(data: &[u8]) {
    let Ok((plan, scope)) = read_hints(data) else { return };
    let written = json::line(&HintsDocument::new("fuzzed", scope, &plan));
    let again = read_hints(written.as_bytes()).expect("it is a plan");
    assert_eq!(again, (plan.clone(), scope));
    if plan.iteration.len() > MAX_BLOCKS {
        return;
    }
    let table = read_csv(b"id,lower,upper,size\na,0,2,512\nb,1,3,1024\n").expect("a table");
    let limits = Limits { nodes: Some(50), ..Limits::default() };
    let input = FollowInput::of_blocks(&PlanBlocks::of_table(table));
    if let Ok(answer) = plan.follow(&input, &limits) {
        assert_eq!(answer.total.requests, 2);
        std::hint::black_box(answer.peak);
    }
}
