//! The blocks that a policy moves to the host.

use crate::graph::{BlockRole, Graph, LayerKind, StepBlock, StepId, Work};
use xmem_types::{BlockId, Bytes};

/// A block that a policy moves to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// The block.
    pub block: BlockId,
    /// The step of the forward pass with which its copy begins.
    pub with: StepId,
    /// The last step of the forward pass that uses it.
    pub last_forward: StepId,
    /// The first step of the backward pass that needs it.
    pub first_backward: StepId,
}

/// The blocks that a policy moves to the host, in the order of the steps with which their copies begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The blocks.
    pub offloads: Vec<Offload>,
}

/// The layer with which a block's copy to the host begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The first one of a kind in question that reads it.
    FirstReader,
    /// The last one that reads it.
    LastReader,
}

impl Selection {
    /// The inputs of layers of some kinds.
    pub(crate) fn inputs(
        graph: &Graph,
        trigger: Trigger,
        moves: impl Fn(LayerKind) -> bool,
    ) -> Self {
        let is_moved_by = |step: &StepId| {
            let is_forward = matches!(graph.steps()[step.index()].work, Work::Forward(_));
            is_forward && graph.kind(*step).is_some_and(&moves)
        };
        Self::of(graph, |id, _| {
            let first = reads(graph.block(id)).find(is_moved_by)?;
            match trigger {
                Trigger::FirstReader => Some(first),
                Trigger::LastReader => reads(graph.block(id)).next_back().or(Some(first)),
            }
        })
    }

    /// All saved tensors, each with its last use of the forward pass.
    pub(crate) fn saved(graph: &Graph) -> Self {
        Self::of(graph, |_, last_forward| Some(last_forward))
    }

    /// The blocks for which `with` gives the step with which the copy begins, from the last step of the forward pass that
    /// uses them.
    pub(crate) fn of(graph: &Graph, with: impl Fn(BlockId, StepId) -> Option<StepId>) -> Self {
        let offload = |block: BlockId| {
            let (last_forward, first_backward) = movable(graph, block)?;
            let with = with(block, last_forward)?;
            Some(Offload { block, with, last_forward, first_backward })
        };
        let mut offloads: Vec<Offload> = graph.ids().filter_map(offload).collect();
        offloads.sort_by_key(|offload| (offload.with, offload.block));
        Self { offloads }
    }

    /// The bytes that are moved to the host.
    #[must_use]
    pub fn bytes(&self, graph: &Graph) -> Bytes {
        self.offloads.iter().map(|offload| graph.block(offload.block).size).sum()
    }
}

/// The steps that read a block as it is at the end: what a layer changes in place is not its input any more.
pub(crate) fn reads(block: &StepBlock) -> impl DoubleEndedIterator<Item = StepId> + '_ {
    let written = block.writers.last().copied();
    block.readers.iter().copied().filter(move |&step| written < Some(step))
}

/// The uses of a block that could be moved to the host and back: its last use of the forward pass, and its first of
/// the backward pass.
pub(crate) fn movable(graph: &Graph, id: BlockId) -> Option<(StepId, StepId)> {
    let block = graph.block(id);
    if block.role != BlockRole::Data || block.size == Bytes::ZERO {
        return None;
    }
    let first_backward = *block.backward.first()?;
    let last_forward = last_forward(block)?;
    (last_forward < first_backward).then_some((last_forward, first_backward))
}

fn last_forward(block: &StepBlock) -> Option<StepId> {
    block.readers.last().max(block.writers.last()).copied()
}
