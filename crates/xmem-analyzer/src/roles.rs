//! The role of each block, with the evidence that decided it.
//!
//! Nothing is decided by size alone: a size only ever joins two facts (an accumulated gradient and
//! a tensor that was wrapped as a parameter), or picks among blocks that qualify otherwise.

mod case;
mod clues;
mod facts;
mod gradients;
mod initial;
mod inventory;
mod recorded;
mod running;
mod stage;
mod table;
mod weights;

pub(crate) use facts::Facts;
pub(crate) use gradients::Gradients;
pub(crate) use inventory::Inventory;
pub use table::{RoleRule, role_rules};
pub(crate) use weights::{FrozenWeights, statistics_of_first_forward};

use crate::block::{Block, Residency, Role};
use crate::gpu::GpuRecording;
use crate::lifetime::{Lifetime, Origin};
use crate::python::Frame;
use crate::spans::Phase;
use clues::Clues;
use table::STAGES;

/// The roles of blocks that a GPU's recording does not show being allocated, and the residency of all.
///
/// A block that is freed while gradients are cleared is a gradient (torch/optim/optimizer.py,
/// `Optimizer.zero_grad`); nothing is known of the others.
pub(crate) fn on_gpu(blocks: &mut [Block], gpu: &GpuRecording, facts: &Facts<'_>) {
    for (row, block) in blocks.iter_mut().enumerate() {
        block.residency = Residency::Device;
        if row >= gpu.earlier {
            continue;
        }
        let freed = block.free_time.and_then(|time| facts.phase_at(time));
        let (role, evidence) = match freed.map(|span| span.phase) {
            Some(Phase::ZeroGrad) => (
                Role::Gradient,
                "allocated before the recording, freed while gradients are cleared",
            ),
            _ => (Role::Unknown, "allocated before the recording began"),
        };
        block.decide(role, Residency::Device, evidence);
    }
}

/// Facts learned on the way, for [`crate::preexisting`].
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
    let mut clues = Clues::new(facts);
    for stage in &STAGES {
        stage.run(blocks, &mut clues, facts);
    }
    let Clues { gradients, inventory, unmatched, .. } = clues;
    (decided, Learned { gradients, inventory: unmatched.with_known(inventory) })
}
