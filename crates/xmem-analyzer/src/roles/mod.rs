//! The role of each block, with the evidence that decided it.
//!
//! Nothing is decided by size alone: a size only ever joins two facts (an accumulated gradient and
//! a tensor that was wrapped as a parameter), or picks among blocks that qualify otherwise.

mod case;
mod gradients;
mod initial;
mod inventory;
mod recorded;
mod running;
mod table;
mod weights;

pub(crate) use gradients::Gradients;
pub(crate) use inventory::Inventory;
pub use table::{RoleRule, role_rules};
pub(crate) use weights::{FrozenWeights, statistics_of_first_forward};

use crate::block::{Block, Lifetime, Origin, Phase};
use crate::known::Known;
use crate::profile::{Iteration, PhaseSpan, span_at};
use crate::program::Program;
use crate::python::{Frame, Registered};
use crate::recording::Recording;
use crate::timeline::Timeline;
use crate::transfers::Transfer;
use case::Clues;
use table::STAGES;
use xmem_trace::DeviceKind;
use xmem_types::Nanos;

/// All that roles are decided from.
pub(crate) struct Facts<'a> {
    pub(crate) program: Program<'a>,
    /// The device whose memory is analyzed.
    pub(crate) device: DeviceKind,
    pub(crate) timeline: &'a Timeline,
    pub(crate) phases: &'a [PhaseSpan],
    pub(crate) iterations: &'a [Iteration],
    pub(crate) transfers: &'a [Transfer],
    /// Per block.
    pub(crate) frames: &'a [Frame],
    pub(crate) recording: Option<&'a Recording>,
    /// What the recorder knows of blocks.
    pub(crate) known: &'a Known,
    /// When modules were given parameters and buffers.
    pub(crate) registrations: &'a [(Nanos, Registered)],
    /// After how many optimizer steps they repeat: the number of optimizers.
    pub(crate) step_period: usize,
}

impl Facts<'_> {
    fn phase_at(&self, time: Nanos) -> Option<&PhaseSpan> {
        span_at(self.phases, time)
    }

    fn span_end(&self, time: Nanos) -> Nanos {
        self.phase_at(time).map_or(Nanos::MAX, |p| p.end)
    }

    /// The start of the first forward phase.
    fn first_forward(&self) -> Nanos {
        self.phases.iter().find(|p| p.phase == Phase::Forward).map_or(Nanos::MAX, |p| p.start)
    }

    /// When the model was last seen at work: what is alive then was kept for the whole run.
    fn last_use(&self) -> Nanos {
        let last = |phase| self.phases.iter().rev().find(|p| p.phase == phase);
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

/// The blocks, each with phase, iteration, role, residency and evidence.
pub(crate) fn assign(
    lifetimes: &[Lifetime],
    origins: &[Origin],
    facts: &Facts<'_>,
) -> (Vec<Block>, Learned) {
    let parts = lifetimes.iter().zip(origins).zip(facts.frames);
    let block = |((&lifetime, &origin), &frame): ((&Lifetime, &Origin), &Frame)| {
        Block::undecided(lifetime, origin, frame, facts.phase_at(lifetime.alloc_time))
    };
    let mut decided: Vec<Block> = parts.map(block).collect();
    let blocks = decided.as_mut_slice();
    let mut clues = Clues {
        last_use: facts.last_use(),
        first_forward: facts.first_forward(),
        ..Clues::default()
    };
    for stage in &STAGES {
        stage.run(blocks, &mut clues, facts);
    }
    let Clues { gradients, inventory, unmatched, .. } = clues;
    (decided, Learned { gradients, inventory: unmatched.with_known(inventory) })
}
