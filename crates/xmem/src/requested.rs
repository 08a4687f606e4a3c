//! What a script asked of PyTorch, as `xmem profile` noted it, as the defaults of an estimate.

use std::sync::Arc;
use xmem_orchestrator::{AttentionKernels, OptimizerImpl, Target};
use xmem_profiles::cudnn::NoWorkspaces;
use xmem_trace::recording::{Implementation, Recording};
use xmem_types::{Diagnostics, Severity};

/// `target` with what the recording asks for, where it leaves the choice.
pub(crate) fn apply(target: Target, recording: &Recording, notes: &mut Diagnostics) -> Target {
    let on = |name: &str| recording.backend(name).unwrap_or(true);
    let mut target = Target {
        optimizer: target.optimizer.or_else(|| of_all(recording)),
        attention: AttentionKernels {
            flash: on("flash_sdp"),
            efficient: on("mem_efficient_sdp"),
            cudnn: on("cudnn_sdp"),
        },
        ..target
    };
    if !on("cudnn.enabled") {
        target.convolutions = Arc::new(NoWorkspaces);
        notes.report("cudnn-off", Severity::Warning, None, || {
            "the script switches cuDNN off: convolutions are taken to need no workspace, and what \
             PyTorch's own take is not modelled"
                .into()
        });
    } else if recording.backend("cudnn.benchmark") == Some(true) {
        notes.report("cudnn-benchmark", Severity::Note, None, || {
            "the script lets cuDNN try its algorithms (cudnn.benchmark): workspaces are those that \
             its heuristics choose, and while it tries they may be larger"
                .into()
        });
    }
    target
}

/// The implementation that the script asked for, if it asked the same of every optimizer.
fn of_all(recording: &Recording) -> Option<OptimizerImpl> {
    let (first, others) = recording.optimizers.split_first()?;
    let alike = |o: &_| (first.implementation, first.differentiable) == *o;
    if first.differentiable || !others.iter().all(|o| alike(&(o.implementation, o.differentiable)))
    {
        return None;
    }
    match first.implementation {
        Implementation::Default => None,
        Implementation::Foreach => Some(OptimizerImpl::Foreach),
        Implementation::Fused => Some(OptimizerImpl::Fused),
        Implementation::ForLoop => Some(OptimizerImpl::ForLoop),
    }
}
