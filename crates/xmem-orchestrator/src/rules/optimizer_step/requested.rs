//! The implementation that the script requested of its optimizers, where `xmem profile` noted it.

use crate::target::OptimizerImpl;
use std::collections::BTreeMap;
use xmem_analyzer::Profile;
use xmem_analyzer::recording::{Implementation, Optimizer};
use xmem_types::IterationId;

/// The request of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// The implementation; `None` leaves it to PyTorch.
    pub(super) run: Option<OptimizerImpl>,
    /// The device of scalars: the GPU if `capturable=True`.
    pub(super) scalars: ScalarPlace,
}

/// The device of step counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ScalarPlace {
    /// That of the implementation.
    #[default]
    Usual,
    /// The GPU, so that a graph can capture the step.
    Device,
}

/// The recorded optimizers, and how many steps of each class the current iteration has seen.
#[derive(Debug, Default)]
pub(super) struct Requested {
    seen: BTreeMap<String, usize>,
    iteration: Option<IterationId>,
}

impl Requested {
    /// The request of the script for the next step of `class`. Optimizers of one class step in the order
    /// of their creation, once an iteration.
    pub(super) fn of_step(
        &mut self,
        profile: &Profile,
        class: &str,
        iteration: Option<IterationId>,
    ) -> Request {
        if iteration != self.iteration {
            self.seen.clear();
            self.iteration = iteration;
        }
        let list = profile.recording().map_or(&[][..], |r| &r.optimizers);
        let of_class: Vec<&Optimizer> = list.iter().filter(|o| o.name() == class).collect();
        let before = self.seen.entry(class.to_owned()).or_default();
        let at = *before % of_class.len().max(1);
        *before += 1;
        of_class.get(at).map_or_else(Request::default, |optimizer| request(optimizer))
    }
}

fn request(optimizer: &Optimizer) -> Request {
    let run = if optimizer.differentiable {
        // torch/optim/optimizer.py, `_default_to_fused_or_foreach`: never over lists.
        Some(OptimizerImpl::ForLoop)
    } else {
        match optimizer.implementation {
            Implementation::Default => None,
            Implementation::Foreach => Some(OptimizerImpl::Foreach),
            Implementation::Fused => Some(OptimizerImpl::Fused),
            Implementation::ForLoop => Some(OptimizerImpl::ForLoop),
        }
    };
    let scalars = if optimizer.capturable { ScalarPlace::Device } else { ScalarPlace::Usual };
    Request { run, scalars }
}
