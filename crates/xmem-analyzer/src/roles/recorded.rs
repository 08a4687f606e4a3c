//! The clues that the recorder gives.

use super::facts::Facts;
use super::inventory::Inventory;
use crate::block::Block;
use crate::marks::TransferKind;
use crate::spans::Phase;
use rustc_hash::FxHashMap;
use xmem_types::{Bytes, Nanos};

/// Trained leaves that are not parameters of the models: sizes with their count.
pub(super) fn trained_beside_the_models(
    blocks: &[Block],
    facts: &Facts<'_>,
    trained: &Inventory,
) -> FxHashMap<Bytes, u32> {
    let mut left: FxHashMap<Bytes, u32> = trained.left().into_iter().collect();
    for (id, &row) in &facts.recorder.tensors {
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

/// The times at which the loop moves batches and begins to compute.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    /// Start of the first iteration.
    pub(super) loop_start: Nanos,
    /// Starts of forward phases.
    pub(super) forwards: Vec<Nanos>,
    /// Starts of backward passes and optimizer steps.
    pub(super) turns: Vec<Nanos>,
    /// Moves of batches, by time.
    pub(super) loaded: Vec<Nanos>,
}

impl Moves {
    pub(super) fn of(blocks: &[Block], facts: &Facts<'_>) -> Self {
        let starts = |wanted: &[Phase]| -> Vec<Nanos> {
            let phases = facts.phases.iter().filter(|p| wanted.contains(&p.phase));
            phases.map(|p| p.start).collect()
        };
        let moved = facts.transfers.iter().filter(|t| t.kind == TransferKind::ToDevice);
        Self {
            loop_start: facts.iterations.first().map_or(Nanos::MAX, |i| i.start),
            forwards: starts(&[Phase::Forward]),
            turns: starts(&[Phase::Backward, Phase::OptimizerStep]),
            loaded: moved.filter(|t| facts.recorder.is_data(t, blocks)).map(|t| t.time).collect(),
        }
    }
}
