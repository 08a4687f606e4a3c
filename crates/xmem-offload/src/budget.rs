//! The budget of saved tensors: how many bytes of them may wait on the device for their backward pass.

use crate::graph::{Graph, StepId};
use crate::selection::movable;
use std::collections::BTreeMap;
use xmem_types::{BlockId, Bytes};

/// The bytes of saved tensors that may wait on the device.
///
/// A saved tensor waits between its last use of the forward pass and its first one of the backward pass, neither included.
/// One that nothing but its own layer is between does not wait: the loss needs its tensors again at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// The bytes.
    pub(crate) limit: Bytes,
    /// The tensors, each with the steps between which it waits.
    pub(crate) waits: BTreeMap<BlockId, Wait>,
}

/// The steps between which a saved tensor waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) last_forward: StepId,
    pub(crate) first_backward: StepId,
}

/// The saved tensors on the device, by what a policy with a budget left there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The budget.
    pub budget: Bytes,
    /// The most bytes of saved tensors that waited on the device while a step computed.
    pub most: Bytes,
}

impl Budget {
    /// The budget of the saved tensors of a step.
    pub(crate) fn new(graph: &Graph, limit: Bytes) -> Self {
        let wait = |block: BlockId| {
            let (last_forward, first_backward) = movable(graph, block)?;
            let wait = Wait { last_forward, first_backward };
            has_others_between(graph, wait).then_some((block, wait))
        };
        Self { limit, waits: graph.ids().filter_map(wait).collect() }
    }

    /// The bytes that wait if everything stays.
    pub(crate) fn saved(&self, graph: &Graph) -> Bytes {
        self.waits.keys().map(|&block| graph.block(block).size).sum()
    }
}

impl Wait {
    /// True while a step runs that is between the two.
    pub(crate) fn includes(self, step: StepId) -> bool {
        self.last_forward < step && step < self.first_backward
    }
}

impl Graph {
    /// The bytes of saved tensors that wait for their backward pass, of which a budget can leave a part: those whose uses are
    /// known, and that other layers are between.
    #[must_use]
    pub fn saved(&self) -> Bytes {
        Budget::new(self, Bytes::ZERO).saved(self)
    }
}

/// True if another layer computes between the two passes.
fn has_others_between(graph: &Graph, wait: Wait) -> bool {
    let layer = |step: StepId| graph.steps()[step.index()].work.layer();
    let own = [layer(wait.last_forward), layer(wait.first_backward)];
    let between = &graph.steps()[wait.last_forward.index() + 1..wait.first_backward.index()];
    between.iter().filter_map(|step| step.work.layer()).any(|other| !own.contains(&Some(other)))
}
