//! vDNN's choice among its policies for a capacity (`vDNN_dyn`; Rhu et al., MICRO 2016, section III.C).

use crate::graph::{Graph, StepId};
use crate::moves::Moves;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::transfer::Link;
use crate::workspaces::runs;
use std::collections::BTreeSet;
use xmem_types::Bytes;

/// What vDNN takes for a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dynamic {
    /// The policy.
    pub policy: Policy,
    /// The passes of convolutions that run without their workspaces. They are slower.
    pub without: BTreeSet<StepId>,
}

impl Dynamic {
    /// The step with the workspaces that are kept.
    #[must_use]
    pub fn graph(&self, graph: &Graph) -> Graph {
        graph.with_workspaces(
            |step, size| {
                if self.without.contains(&step) { Bytes::ZERO } else { size }
            },
        )
    }
}

/// The first of none, conv and all that fits `capacity`, with all workspaces. If none does, the first one that fits without
/// them, and then the workspaces of one pass of a convolution after the other, in the order of the step, as far as they
/// fit. All without workspaces if nothing fits.
#[must_use]
pub fn vdnn_dynamic(
    graph: &Graph,
    moves: Moves,
    link: &Link,
    placement: Placement,
    capacity: Bytes,
) -> Dynamic {
    let all = Policy::VdnnAll(moves);
    let policies = [Policy::None, Policy::VdnnConv, all];
    let first = |graph: &Graph| {
        policies.into_iter().find(|&policy| runs(graph, policy, link, placement, capacity))
    };
    if let Some(policy) = first(graph) {
        return Dynamic { policy, without: BTreeSet::new() };
    }
    let steps = graph.workspace_steps();
    let without: BTreeSet<StepId> = steps.iter().copied().collect();
    let Some(policy) = first(&graph.without_workspaces()) else {
        return Dynamic { policy: all, without };
    };
    let mut chosen = Dynamic { policy, without };
    for step in steps {
        chosen.without.remove(&step);
        if !runs(&chosen.graph(graph), policy, link, placement, capacity) {
            chosen.without.insert(step);
        }
    }
    chosen
}
