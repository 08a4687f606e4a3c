//! A training step with a policy.

use crate::event_loop::{Memory, run};
use crate::graph::Graph;
use crate::policy::Policy;
use crate::run::Run;
use crate::selection::Selection;
use crate::transfer::Link;

/// Runs a step with a policy.
#[must_use]
pub fn simulate(graph: &Graph, policy: Policy, link: &Link, memory: Memory<'_>) -> Run {
    run(graph, policy.rules().rules(graph), link, memory)
}

impl Selection {
    /// The blocks that `policy` moves.
    #[must_use]
    pub fn new(graph: &Graph, policy: Policy) -> Self {
        policy.rules().rules(graph).selection
    }
}
