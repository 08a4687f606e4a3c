//! Momentum of SGD: a buffer per parameter, which the first step clones from its gradient once weight decay has been added
//! (torch/optim/sgd.py, `_multi_tensor_sgd`, `_single_tensor_sgd`). Later steps change the buffers in place.

use super::{Values, WhatIf};
use crate::change::{Change, WhatIfError};
use crate::schedule::{AddedBlock, Origin, Schedule, ScheduledBlock};
use crate::target::Target;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use xmem_analyzer::{Phase, PhaseSpan, Profile, Role};
use xmem_types::{Bytes, RequestKind, StreamId};

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "momentum",
    values: Values::Named(&[("true", "with it; as recorded is without")]),
    help: "momentum of SGD: a state of the size of each parameter",
    change: |value| match value {
        "true" => Some(Arc::new(Momentum)),
        _ => None,
    },
};

#[derive(Debug)]
struct Momentum;

impl Change for Momentum {
    fn target(&self, profile: &Profile, _: &mut Target) -> Result<(), WhatIfError> {
        let (what_if, of) = (WHAT_IF.name, "SGD");
        let classes = profile.step_classes();
        if classes.iter().any(|class| *class != of) {
            let recorded = classes.into_iter().collect::<Vec<_>>().join(" and ");
            return Err(WhatIfError::OtherOptimizer { what_if, of, recorded });
        }
        let has = |role| profile.blocks.iter().any(|block| block.role == role);
        if has(Role::OptimizerState) {
            let problem = "the recorded optimizer has it";
            return Err(WhatIfError::Recorded { what_if, problem });
        }
        if !has(Role::Gradient) {
            let problem = "no gradients were recorded: record at least one training step";
            return Err(WhatIfError::Recorded { what_if, problem });
        }
        Ok(())
    }

    fn schedule(&self, profile: &Profile, _: &Target, schedule: &mut Schedule) {
        let mut buffers = BTreeMap::new();
        let steps = profile.phases.iter().filter(|span| span.phase == Phase::OptimizerStep);
        let added = steps.flat_map(|step| of_step(schedule, step, &mut buffers)).collect();
        schedule.add(added);
    }

    fn is_other_job(&self) -> bool {
        true
    }

    fn words(&self, _: &Target) -> Option<String> {
        Some("momentum, with a state of the size of each parameter".to_owned())
    }
}

/// The buffers that a step makes: one for each gradient without one, in the order of parameters. `buffers` counts those of
/// the steps before by their size.
fn of_step(
    schedule: &Schedule,
    step: &PhaseSpan,
    buffers: &mut BTreeMap<Bytes, usize>,
) -> Vec<AddedBlock> {
    let row = |time| schedule.times.partition_point(|&at| at < time);
    let rows = row(step.start)..row(step.end);
    let mut without: BTreeMap<Bytes, usize> = BTreeMap::new();
    for (size, _) in alive(schedule, rows.start, Role::Gradient) {
        *without.entry(size).or_default() += 1;
    }
    for (size, count) in &mut without {
        *count = count.saturating_sub(buffers.get(size).copied().unwrap_or_default());
    }
    let mut made = alive(schedule, rows.start, Role::Parameter);
    made.retain(|(size, _)| {
        let count = without.get_mut(size).filter(|count| **count > 0);
        count.map(|count| *count -= 1).is_some()
    });
    let behind = behind(schedule, rows, made.len());
    let mut added = Vec::with_capacity(made.len());
    for ((size, stream), behind) in made.into_iter().zip(behind) {
        *buffers.entry(size).or_default() += 1;
        let (role, origin) = (Role::OptimizerState, Origin::Unseen { at: step.start });
        let block = ScheduledBlock { size, role, origin, rule: None, unmodeled: None };
        added.push(AddedBlock { behind, block, size, stream });
    }
    added
}

/// The sizes and streams of the blocks of a role that are alive before a row, in the order in which they were made.
fn alive(schedule: &Schedule, row: usize, role: Role) -> Vec<(Bytes, StreamId)> {
    let mut alive: Vec<Option<(Bytes, StreamId)>> = vec![None; schedule.blocks.len()];
    let mut order = Vec::new();
    for request in &schedule.requests[..row] {
        let block = request.block.index();
        alive[block] = match request.kind {
            RequestKind::Alloc { size, stream } if schedule.blocks[block].role == role => {
                order.push(block);
                Some((size, stream))
            }
            _ => None,
        };
    }
    order.into_iter().filter_map(|block| alive[block].take()).collect()
}

/// The requests behind which a step makes `count` buffers: gradients with weight decay are made before, for all parameters
/// (foreach) or for one after the other.
fn behind(schedule: &Schedule, rows: Range<usize>, count: usize) -> Vec<usize> {
    let Some(before) = rows.start.checked_sub(1) else { return Vec::new() };
    let is_alloc = |row: &usize| !matches!(schedule.requests[*row].kind, RequestKind::Free);
    let decayed: Vec<usize> = rows.clone().filter(is_alloc).take(count).collect();
    let at_once = rows.clone().take_while(is_alloc).count();
    match decayed.last() {
        Some(&last) if decayed.len() == count && at_once >= count => vec![last; count],
        Some(_) if decayed.len() == count => decayed,
        _ => vec![before; count],
    }
}
