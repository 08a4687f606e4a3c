//! vDNN's choice among its policies for a capacity (`vDNN_dyn`).

use crate::graph::Graph;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::simulation::{Memory, simulate};
use crate::transfer::Link;
use xmem_types::Bytes;

/// The policy that vDNN takes for a capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dynamic {
    /// The policy.
    pub policy: Policy,
    /// The algorithms of convolutions.
    pub workspaces: Workspaces,
}

/// The algorithms of convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workspaces {
    /// As recorded.
    Kept,
    /// Those that need no memory while they run. They are slower, which is not in the durations.
    Without,
}

/// The first of none, conv and all that fits `capacity`, with workspaces and then without; the last one if none does.
/// vDNN keeps the workspaces of as many layers as fit; here it is all or none.
#[must_use]
pub fn vdnn_dynamic(graph: &Graph, link: &Link, placement: Placement, capacity: Bytes) -> Dynamic {
    let without = graph.without_workspaces();
    for (workspaces, graph) in [(Workspaces::Kept, graph), (Workspaces::Without, &without)] {
        for policy in [Policy::None, Policy::VdnnConv, Policy::VdnnAll] {
            let mut space = placement.space(Some(capacity));
            let run = simulate(graph, policy, link, Memory::Limited(space.as_mut()));
            if run.out_of_memory.is_none() {
                return Dynamic { policy, workspaces };
            }
        }
    }
    Dynamic { policy: Policy::VdnnAll, workspaces: Workspaces::Without }
}
