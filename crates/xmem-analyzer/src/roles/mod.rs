//! The role of each block, with the evidence that decided it.
//!
//! Nothing is decided by size alone: a size only ever joins two facts (an accumulated gradient and
//! a tensor that was wrapped as a parameter), or picks among blocks that qualify otherwise.

mod gradients;
mod initial;
mod inventory;
mod recorded;
mod running;
mod weights;

pub(crate) use gradients::Gradients;
pub(crate) use inventory::Inventory;
pub(crate) use weights::{FrozenWeights, statistics_of_first_forward};

use crate::block::{Block, Phase};
use crate::known::Known;
use crate::profile::Profile;
use crate::python::{Context, Registered};
use crate::timeline::Timeline;
use xmem_types::{Bytes, Nanos, OpId};

/// All that roles are decided from.
pub(crate) struct Facts<'a> {
    /// Without its blocks: those are being decided.
    pub(crate) profile: &'a Profile,
    pub(crate) timeline: &'a Timeline,
    /// Per block: the surroundings that the Python stack shows.
    pub(crate) context: &'a [Context],
    /// What the recorder knows of blocks.
    pub(crate) known: &'a Known,
    /// When modules were given parameters and buffers.
    pub(crate) registrations: &'a [(Nanos, Registered)],
    /// After how many optimizer steps they repeat: the number of optimizers.
    pub(crate) step_period: usize,
}

impl Facts<'_> {
    pub(crate) fn has_shapes(&self) -> bool {
        self.profile.trace.signatures.len() > 1
    }

    pub(crate) fn has_python(&self) -> bool {
        !self.profile.trace.python.is_empty()
    }

    /// The bytes of an operator's tensor argument, where recorded.
    pub(crate) fn tensor_bytes(&self, op: OpId, position: usize) -> Option<Bytes> {
        self.profile.arguments(op).tensor(position).map(|t| Bytes(t.bytes()))
    }

    fn span_end(&self, time: Nanos) -> Nanos {
        self.profile.phase_at(time).map_or(Nanos::MAX, |p| p.end)
    }

    /// When the model was last seen at work: what is alive then was kept for the whole run.
    fn last_use(&self) -> Nanos {
        let last = |phase| self.profile.phases.iter().rev().find(|p| p.phase == phase);
        last(Phase::OptimizerStep)
            .or_else(|| last(Phase::Backward))
            .or_else(|| last(Phase::Forward))
            .map_or(Nanos::MIN, |p| p.start)
    }
}

/// What was learned on the way, for [`crate::preexisting`].
pub(crate) struct Learned {
    pub(crate) gradients: Gradients,
    pub(crate) inventory: Inventory,
}

/// Assigns phase, iteration, role, residency and evidence to every block.
pub(crate) fn assign(blocks: &mut [Block], facts: &Facts<'_>) -> Learned {
    for block in blocks.iter_mut() {
        if let Some(span) = facts.profile.phase_at(block.alloc_time) {
            block.phase = span.phase;
            block.iteration = span.iteration;
        }
    }
    let numbers = running::made_from_numbers(facts);
    let gradients = gradients::assign(blocks, facts);
    running::steps(blocks, facts, &numbers);
    running::data(blocks, facts);
    let inventory = Inventory::build(&gradients, facts);
    let mut unmatched = inventory.clone();
    initial::assign(blocks, facts, &numbers, &mut unmatched);
    running::forwards(blocks, facts, &mut unmatched);
    recorded::assign(blocks, facts, &inventory);
    Learned { gradients, inventory: unmatched.with_known(inventory) }
}
