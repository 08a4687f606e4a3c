//! The blocks that a policy moves to the host.

use crate::graph::{BlockRole, Graph, StepBlock, StepId, Work};
use crate::policy::{Policy, Trigger};
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

impl Selection {
    /// The blocks that `policy` moves.
    #[must_use]
    pub fn new(graph: &Graph, policy: Policy) -> Self {
        let mut offloads: Vec<Offload> =
            graph.ids().filter_map(|block| offload(graph, policy, block)).collect();
        offloads.sort_by_key(|offload| (offload.with, offload.block));
        Self { offloads }
    }

    /// The bytes that are moved to the host.
    #[must_use]
    pub fn bytes(&self, graph: &Graph) -> Bytes {
        self.offloads.iter().map(|offload| graph.block(offload.block).size).sum()
    }
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

fn offload(graph: &Graph, policy: Policy, id: BlockId) -> Option<Offload> {
    let (last_forward, first_backward) = movable(graph, id)?;
    let block = graph.block(id);
    let written = block.writers.last().copied();
    // What a layer changes in place is not its input any more.
    let reads = || block.readers.iter().copied().filter(|&step| written < Some(step));
    let is_offloaded_by = |step: &StepId| {
        let is_forward = matches!(graph.steps()[step.index()].work, Work::Forward(_));
        is_forward && graph.kind(*step).is_some_and(|kind| policy.offloads(kind))
    };
    let with = match policy {
        Policy::SaveOnCpu => last_forward,
        _ => {
            let first = reads().find(is_offloaded_by)?;
            match policy.trigger() {
                Trigger::FirstReader => first,
                Trigger::LastReader => reads().next_back().unwrap_or(first),
            }
        }
    };
    Some(Offload { block: id, with, last_forward, first_backward })
}
