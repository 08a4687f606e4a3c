//! Blocks that are computed again in the backward pass instead of being kept (SuperNeurons, checkpointing).

use crate::graph::{Graph, LayerKind, StepId};
use crate::selection::{Selection, movable};
use std::collections::BTreeMap;
use xmem_types::BlockId;

/// The blocks that are dropped after their last use of the forward pass, each with what is needed to make it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recomputations {
    pub(crate) of: BTreeMap<BlockId, Recomputation>,
}

/// The way to make a block again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recomputation {
    /// The last step of the forward pass that uses it.
    pub(crate) last_forward: StepId,
    /// The steps that write it.
    pub(crate) steps: Vec<StepId>,
    /// The blocks that they read.
    pub(crate) inputs: Vec<BlockId>,
}

impl Recomputations {
    /// The outputs of layers of some kinds that the selection does not move, as far as what they are made of is there in the
    /// backward pass, or can be made again itself.
    pub(crate) fn new(
        graph: &Graph,
        selection: &Selection,
        is_cheap: impl Fn(LayerKind) -> bool,
    ) -> Self {
        let moved: Vec<BlockId> = selection.offloads.iter().map(|offload| offload.block).collect();
        let mut of = BTreeMap::new();
        let mut ids: Vec<BlockId> = graph.ids().collect();
        ids.sort_by_key(|&id| graph.lifetime(id).alloc);
        for id in ids {
            let Some((last_forward, _)) = movable(graph, id).filter(|_| !moved.contains(&id))
            else {
                continue;
            };
            let steps = graph.block(id).writers.clone();
            let is_made_cheaply = |step: &StepId| graph.kind(*step).is_some_and(&is_cheap);
            if steps.is_empty() || !steps.iter().all(is_made_cheaply) {
                continue;
            }
            let inputs: Vec<BlockId> = graph
                .ids()
                .filter(|&other| other != id)
                .filter(|&other| graph.block(other).readers.iter().any(|r| steps.contains(r)))
                .collect();
            let needed = *graph.block(id).backward.first().expect("it is movable");
            let is_there = |other: &BlockId| {
                let lifetime = graph.lifetime(*other);
                let lasts = lifetime.free.is_none_or(|free| free >= needed);
                // What is changed in place afterwards is not the input any more.
                let last_write = graph.block(*other).writers.last().copied();
                lasts && last_write < steps.first().copied()
            };
            if !inputs.is_empty() && inputs.iter().all(is_there) {
                of.insert(id, Recomputation { last_forward, steps, inputs });
            }
        }
        Self { of }
    }

    /// The blocks that the same steps write as a block: they are made again together.
    pub(crate) fn made_with(&self, block: BlockId) -> Vec<BlockId> {
        let Some(wanted) = self.of.get(&block) else { return Vec::new() };
        let others = self.of.iter().filter(|(other, _)| **other != block);
        others.filter(|(_, made)| made.steps == wanted.steps).map(|(&other, _)| other).collect()
    }
}
