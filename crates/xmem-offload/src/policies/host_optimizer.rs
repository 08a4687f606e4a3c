//! The optimizer on the host: torchao's `CPUOffloadOptimizer` (torchao/optim/cpu_offload.py), as ZeRO-Offload (Ren et al.,
//! USENIX ATC 2021, section 4) has it.
//!
//! The state is on the host. Each gradient is copied there, on a stream of its own, as soon as the backward pass has made
//! it; the host then makes the step, one parameter after the other, and each parameter is copied back. Gradients stay on
//! the device as recorded (`offload_gradients=False`).

use super::PolicyRules;
use crate::graph::Graph;
use crate::host_update::HostUpdate;
use crate::rules::Rules;
use xmem_types::Bytes;

/// The option of [`Policy::HostOptimizer`](crate::Policy::HostOptimizer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostOptimizer {
    /// The bytes that the host reads and writes in a second: its memory limits the step (PyTorch's fused Adam on the CPU,
    /// aten/src/ATen/native/cpu/FusedAdamKernel.cpp, does it in one pass).
    pub bandwidth: Bytes,
}

impl HostOptimizer {
    /// The bandwidth of a host with two channels of DDR4-3200 (JESD79-4: 8 bytes at 3200 MT/s each), rounded.
    pub const BANDWIDTH: Bytes = Bytes(50_000_000_000);
}

impl PolicyRules for HostOptimizer {
    fn rules(&self, graph: &Graph) -> Rules {
        match HostUpdate::new(graph, self.bandwidth) {
            Some(update) => Rules {
                graph: Some(graph.without_optimizer()),
                host_update: Some(update),
                ..Rules::nothing()
            },
            None => Rules::nothing(),
        }
    }
}
