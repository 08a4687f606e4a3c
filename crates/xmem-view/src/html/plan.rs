//! A static plan beside what the allocator does with the same blocks: the head of its data and its columns.
//! `web/src/data/plan.ts` reads them.

use super::columns::{ColumnHead, Columns, Encoding};
use serde::Serialize;
use std::collections::BTreeMap;
use xmem::analyzer::Role;
use xmem_studies::planning::PlanAnswer;

#[derive(Serialize)]
pub(super) struct PlanHead<'a> {
    /// The planner of the best plan; none if there is no plan.
    planner: Option<String>,
    planned_bytes: Option<u64>,
    lower_bound_bytes: u64,
    proven: bool,
    reserved_bytes: u64,
    ops: Vec<&'a str>,
    columns: Vec<ColumnHead>,
}

/// The head of a plan, and its columns.
pub(super) fn encode(answer: &PlanAnswer) -> (PlanHead<'_>, Vec<u8>) {
    let mut columns = Columns::default();
    let blocks = answer.blocks.list.blocks();
    let facts = &answer.blocks.facts;
    let run = &answer.pytorch;
    let best = answer.best();
    columns.add("start", Encoding::Delta, blocks.iter().map(|block| u64::from(block.start)));
    let lifetime = |start: u32, end: u32| u64::from(end.saturating_sub(start));
    columns.add("lifetime", Encoding::Plain, blocks.iter().map(|b| lifetime(b.start, b.end)));
    columns.add("size", Encoding::Plain, blocks.iter().map(|block| block.size.get()));
    let role = |role: Option<Role>| {
        let row = role.and_then(|role| Role::ALL.iter().position(|known| *known == role));
        row.unwrap_or(Role::ALL.len() - 1) as u64
    };
    columns.add("role", Encoding::Plain, facts.iter().map(|of| role(of.role)));
    let (mut ops, mut rows) = (Vec::new(), BTreeMap::new());
    let op_rows: Vec<u64> = facts.iter().map(|of| row(&of.op, &mut ops, &mut rows)).collect();
    columns.add("op", Encoding::Plain, op_rows.into_iter());
    if let Some(best) = best {
        columns.add("offset", Encoding::Plain, best.plan.offsets().iter().map(|at| at.get()));
    }
    let place = |of: &Option<xmem_studies::planning::Placement>| {
        of.map_or(0, |place| place.segment as u64 + 1)
    };
    columns.add("segment", Encoding::Plain, run.placements.iter().map(place));
    let within =
        |of: &Option<xmem_studies::planning::Placement>| of.map_or(0, |place| place.offset.get());
    columns.add("within", Encoding::Plain, run.placements.iter().map(within));
    let segments = &run.segments;
    columns.add("segment_size", Encoding::Plain, segments.iter().map(|of| of.size.get()));
    columns.add("segment_start", Encoding::Delta, segments.iter().map(|of| u64::from(of.start)));
    let end = |of: &xmem_studies::planning::SegmentSpan| {
        of.end.map_or(0, |end| lifetime(of.start, end) + 1)
    };
    columns.add("segment_lifetime", Encoding::Plain, segments.iter().map(end));
    let head = PlanHead {
        planner: best.map(|best| best.planner.to_string()),
        planned_bytes: best.map(|best| best.plan.peak().get()),
        lower_bound_bytes: answer.lower_bound().get(),
        proven: answer.is_proven(),
        reserved_bytes: run.reserved.get(),
        ops,
        columns: columns.heads,
    };
    (head, columns.bytes)
}

/// The row of a name among those that were met.
fn row<'a>(name: &'a str, names: &mut Vec<&'a str>, rows: &mut BTreeMap<&'a str, u64>) -> u64 {
    *rows.entry(name).or_insert_with(|| {
        names.push(name);
        names.len() as u64 - 1
    })
}
