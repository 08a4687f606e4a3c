//! What-ifs of an estimate.

mod args;
mod error;

pub(crate) use args::{Rate, WhatIfArgs};
pub(crate) use error::WhatIfFailure;

use crate::error::CliError;
use xmem::EstimateBuilder;
use xmem::devices::Bandwidth;
use xmem::orchestrator::{ChosenWhatIf, StreamCompletion};

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
    let takes_rates =
        |what_if: &&ChosenWhatIf| what_if.name() == "collectives" && what_if.value() == "bandwidth";
    if args.chosen().iter().any(takes_rates) {
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
        builder = builder.stream_completion(StreamCompletion::Modeled(Box::new(model)));
    }
    for what_if in args.chosen() {
        builder = builder.what_if(what_if.clone());
    }
    Ok(builder)
}
