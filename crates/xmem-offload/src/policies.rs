//! The policies, one file each: what is moved to the host or made again, when, and what is brought back before it is
//! needed. Each file turns a training step into [`Rules`]; the event loop knows no policy.

mod checkpoint;
mod dymem;
mod host_optimizer;
mod none;
mod offload_activations;
mod save_on_cpu;
mod serial;
mod superneurons;
mod vdnn;

pub use checkpoint::Checkpoint;
pub(crate) use dymem::Dymem;
pub use host_optimizer::HostOptimizer;
pub(crate) use none::NoPolicy;
pub use offload_activations::OffloadActivations;
pub(crate) use save_on_cpu::SaveOnCpu;
pub(crate) use serial::Serial;
pub use superneurons::SuperNeurons;
pub(crate) use vdnn::{Vdnn, VdnnSet};

use crate::graph::Graph;
use crate::rules::Rules;

/// A policy with its options.
pub(crate) trait PolicyRules {
    /// What the policy does with a training step.
    fn rules(&self, graph: &Graph) -> Rules;
}
