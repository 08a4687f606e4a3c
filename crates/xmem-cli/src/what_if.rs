//! What-ifs of an estimate.

mod args;
mod error;

pub(crate) use args::{Collectives, OptimizerKind, OtherJob, Rate, WhatIfArgs, ZeroGrad};
pub(crate) use error::WhatIfFailure;

use crate::error::CliError;
use xmem::orchestrator::{OptimizerImpl, StreamCompletion, ZeroGradPlace};
use xmem::profiles::Bandwidth;
use xmem::{ClearedGradients, EstimateBuilder};

/// Adds the what-ifs to the estimate.
pub(crate) fn apply(
    mut builder: EstimateBuilder,
    args: &WhatIfArgs,
) -> Result<EstimateBuilder, CliError> {
    if let Some(name) =
        args.no_rule.iter().find(|n| xmem::orchestrator::rules().iter().all(|r| r.name != **n))
    {
        let known: Vec<&str> = xmem::orchestrator::rules().iter().map(|r| r.name).collect();
        return Err(
            WhatIfFailure::UnknownRule { name: name.clone(), known: known.join(", ") }.into()
        );
    }
    builder = builder.without_rules(args.no_rule.iter().cloned());
    if let Some(place) = args.zero_grad {
        builder = builder.zero_grad(match place {
            ZeroGrad::Pos0 => ZeroGradPlace::BeforeBackward,
            ZeroGrad::Pos1 => ZeroGradPlace::IterationStart,
        });
    }
    if args.set_to_none == Some(false) {
        builder = builder.gradients(ClearedGradients::Kept);
    }
    if let Some(kind) = args.optimizer_impl {
        builder = builder.optimizer(match kind {
            OptimizerKind::Foreach => OptimizerImpl::Foreach,
            OptimizerKind::Fused => OptimizerImpl::Fused,
            OptimizerKind::ForLoop => OptimizerImpl::ForLoop,
        });
    }
    if let Some(size) = args.cublas_workspace_config {
        builder = builder.cublas_workspace(size);
    }
    if let Some(OtherJob::WorldSize(ranks)) = args.what_if {
        builder = builder.world_size(ranks);
    }
    builder = match args.collectives {
        Collectives::AtOnce => builder,
        Collectives::RunAhead => builder.stream_completion(StreamCompletion::HostWaits),
        Collectives::Bandwidth => {
            let mut model = builder.completion_model();
            for (rate, value) in &args.rates {
                let link = Bandwidth((value * 1e9) as u64);
                match rate {
                    Rate::Nvlink => model.device.nvlink = Some(link),
                    Rate::Pcie => model.device.pcie = link,
                    Rate::Network => model.device.network = link,
                    Rate::Host => model.host = *value,
                }
            }
            builder.stream_completion(StreamCompletion::Modeled(Box::new(model)))
        }
    };
    Ok(builder)
}
