//! What the recorder knows overrules what operators and lifetimes suggest.

use super::{Facts, Inventory};
use crate::block::{Block, Phase, Residency, Role};
use crate::known::{Arrival, Known, State};
use crate::marks::TransferKind;
use crate::names::NameKind;
use crate::recording::TensorKind;
use crate::timeline::stretch_around;
use rustc_hash::FxHashMap;
use xmem_types::{BlockId, Bytes, Nanos};

type Decision = (Role, Residency, &'static str);

/// Decides again about the blocks of which the recording says something.
pub(super) fn assign(blocks: &mut [Block], facts: &Facts<'_>, trained: &Inventory) {
    let known = facts.known;
    if known.is_empty() {
        return;
    }
    let mut unnamed = trained_beside_the_models(blocks, facts, trained);
    let course = Course::of(blocks, facts);
    for (row, block) in blocks.iter_mut().enumerate() {
        let id = BlockId::new(row);
        let decision = named(id, block, facts)
            .or_else(|| state(id, block, known))
            .or_else(|| gradient(id, block, known))
            .or_else(|| host_copy(id, block, known))
            .or_else(|| match block.phase {
                Phase::Init => before_training(id, block, &course, &mut unnamed),
                Phase::Data => loaded(id, block, &course),
                _ => None,
            });
        if let Some((role, residency, evidence)) = decision {
            block.decide(role, residency, evidence);
        }
    }
}

/// Trained leaves that are no parameters of the models: sizes with their count.
fn trained_beside_the_models(
    blocks: &[Block],
    facts: &Facts<'_>,
    trained: &Inventory,
) -> FxHashMap<Bytes, u32> {
    let mut left: FxHashMap<Bytes, u32> = trained.left().into_iter().collect();
    for (id, &row) in &facts.known.tensors {
        let wants = facts.recording;
        let wants = wants.and_then(|r| r.tensors.get(row)).and_then(|t| t.requires_grad);
        if let Some(n @ 1..) =
            left.get_mut(&blocks[id.index()].size).filter(|_| wants != Some(false))
        {
            *n -= 1;
        }
    }
    left
}

fn named(id: BlockId, block: &Block, facts: &Facts<'_>) -> Option<Decision> {
    let known = facts.known;
    let row = *known.tensors.get(&id)?;
    let tensor = facts.recording?.tensors.get(row)?;
    let (role, evidence) = match tensor.kind {
        TensorKind::Parameter => (Role::Parameter, "named as a parameter by the recording"),
        TensorKind::Buffer => (Role::Buffer, "named as a buffer by the recording"),
    };
    let residency = match known.arrival(id) {
        Some(Arrival::Made) => Residency::Device,
        Some(Arrival::Moved(_)) => Residency::Model,
        None if known.is_host_copy(id) => Residency::HostOnly,
        None if known.is_at_work(tensor.model) => Residency::Model,
        None if known.first_arrival.is_some_and(|first| block.alloc_time < first) => {
            let text = "of a model that is not trained and of which nothing goes to the GPU";
            return Some((role, Residency::HostOnly, text));
        }
        None => Residency::Model,
    };
    Some((role, residency, evidence))
}

fn state(id: BlockId, block: &Block, known: &Known) -> Option<Decision> {
    let what = known.state.get(&id).filter(|_| block.role != Role::OptimizerState)?;
    let text = "listed by the recording as the optimizer's state";
    Some(match what {
        State::Counter => (Role::OptimizerState, Residency::HostOnly, text),
        State::Other => (Role::OptimizerState, Residency::Device, text),
    })
}

fn gradient(id: BlockId, block: &Block, known: &Known) -> Option<Decision> {
    let is = known.gradients.contains(&id) && block.role != Role::Gradient;
    let text = "named by the recording as a parameter's gradient";
    is.then_some((Role::Gradient, Residency::Device, text))
}

fn host_copy(id: BlockId, block: &Block, known: &Known) -> Option<Decision> {
    let is = known.is_host_copy(id) && known.arrival(id).is_none();
    is.then_some((block.role, Residency::HostOnly, "a copy that the program made for the host"))
}

/// Memory that the program made before the loop.
fn before_training(
    id: BlockId,
    block: &Block,
    course: &Course<'_>,
    unnamed: &mut FxHashMap<Bytes, u32>,
) -> Option<Decision> {
    let known = course.known;
    let of_model = matches!(block.role, Role::Parameter | Role::Buffer);
    let trained = block.role == Role::Parameter
        && unnamed.get_mut(&block.size).filter(|n| **n > 0).map(|n| *n -= 1).is_some();
    if of_model && (trained || !known.lists.tensors) {
        let moved = known.arrival(id).is_some();
        let text = "of the model, though the recording does not name it, and moved to the GPU";
        return moved.then_some((block.role, Residency::Model, text));
    }
    if block.role == Role::OptimizerState {
        return None;
    }
    let brief = !block.lasts_beyond(course.first_forward);
    let role = if brief { Role::Temporary } else { Role::Input };
    match known.arrival(id) {
        Some(Arrival::Made) => {
            return Some((role, Residency::Device, "made on the GPU before training"));
        }
        Some(Arrival::Moved(_)) if of_model && !brief => {
            let text = "like a model's, though no model that runs has it, and moved to the GPU";
            return Some((Role::Buffer, Residency::Model, text));
        }
        Some(Arrival::Moved(time)) => {
            let text = if time < course.begin {
                "moved to the GPU before training"
            } else {
                "made before training, moved to the GPU by the loop"
            };
            return Some((role, Residency::Batch, text));
        }
        None => {}
    }
    let first = known.first_arrival?;
    let role = if of_model { Role::Unknown } else { block.role };
    if block.alloc_time < first {
        let text = "made before anything was on the GPU, and never moved there";
        return Some((role, Residency::HostOnly, text));
    }
    let batch = block.residency == Residency::Batch;
    let others = course.loaded.last().is_some_and(|&last| block.alloc_time < last);
    (batch && others).then_some((
        role,
        Residency::HostOnly,
        "not moved, though batches after it are",
    ))
}

/// Memory that the loop made before forward.
fn loaded(id: BlockId, block: &Block, course: &Course<'_>) -> Option<Decision> {
    let brief = course.forwards.get(course.forwards.partition_point(|f| *f < block.alloc_time));
    let brief = brief.is_some_and(|&forward| !block.lasts_beyond(forward));
    let role = if brief { Role::Temporary } else { Role::Input };
    match course.known.arrival(id) {
        Some(Arrival::Made) => {
            return Some((role, Residency::Device, "made on the GPU while data is loaded"));
        }
        Some(Arrival::Moved(_)) => {
            return Some((role, Residency::Batch, "made while data is loaded, moved to the GPU"));
        }
        None => {}
    }
    if course.in_loader(block) {
        return Some((block.role, Residency::HostOnly, "made by the data loader, and not moved"));
    }
    let window = stretch_around(&course.turns, block.alloc_time);
    let before = course.loaded.partition_point(|at| *at <= block.alloc_time);
    let next = course.loaded.get(before).filter(|at| **at < window.end);
    if next.is_some() {
        return Some((
            block.role,
            Residency::HostOnly,
            "made before the batch moves, and not moved",
        ));
    }
    let previous = before.checked_sub(1).map(|at| course.loaded[at]);
    let later = previous.is_some_and(|at| at >= window.start && at >= course.begin);
    (later && course.forwards.last().is_some_and(|&last| block.alloc_time < last)).then_some((
        role,
        Residency::Device,
        "computed from what was moved to the GPU before",
    ))
}

/// When the loop moves what, and when forward begins.
struct Course<'a> {
    facts: &'a Facts<'a>,
    known: &'a Known,
    /// Start of the first iteration.
    begin: Nanos,
    first_forward: Nanos,
    /// Starts of forward phases.
    forwards: Vec<Nanos>,
    /// Starts of backward passes and optimizer steps.
    turns: Vec<Nanos>,
    /// Moves of batches, by time.
    loaded: Vec<Nanos>,
}

impl<'a> Course<'a> {
    fn of(blocks: &[Block], facts: &'a Facts<'a>) -> Self {
        let phases = &facts.phases;
        let starts = |wanted: &[Phase]| -> Vec<Nanos> {
            phases.iter().filter(|p| wanted.contains(&p.phase)).map(|p| p.start).collect()
        };
        let begin = facts.iterations.first().map_or(Nanos::MAX, |i| i.start);
        let forwards = starts(&[Phase::Forward]);
        let moved = facts.transfers.iter().filter(|t| t.kind == TransferKind::ToDevice);
        let loaded = moved.filter(|t| facts.known.is_data(t, blocks)).map(|t| t.time).collect();
        Self {
            facts,
            known: facts.known,
            begin,
            first_forward: forwards.first().copied().unwrap_or(Nanos::MAX),
            forwards,
            turns: starts(&[Phase::Backward, Phase::OptimizerStep]),
            loaded,
        }
    }

    fn in_loader(&self, block: &Block) -> bool {
        let program = self.facts.program;
        let kind = |op| program.kind(op);
        program.op_path(block).any(|op| kind(op) == NameKind::Data)
    }
}
