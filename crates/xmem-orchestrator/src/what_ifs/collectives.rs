//! Another time at which collectives, and other work on the streams of a virtual GPU, are complete.

use super::{Values, WhatIf};
use crate::change::{Change, WhatIfError};
use crate::completion::{CompletionModel, StreamCompletion};
use crate::target::Target;
use std::sync::Arc;
use xmem_analyzer::Profile;

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "collectives",
    values: Values::Named(&[
        ("at-once", "at once, as recorded"),
        ("bandwidth", "after durations that follow from the rates of the device and its links"),
        ("run-ahead", "when the host waits for it"),
    ]),
    help: "when collectives, and other work on the streams of a virtual GPU, are complete",
    change: |value| match value {
        "at-once" => Some(Arc::new(Collectives::AtOnce)),
        "bandwidth" => Some(Arc::new(Collectives::Bandwidth)),
        "run-ahead" => Some(Arc::new(Collectives::RunAhead)),
        _ => None,
    },
};

#[derive(Debug, PartialEq, Eq)]
enum Collectives {
    AtOnce,
    Bandwidth,
    RunAhead,
}

impl Change for Collectives {
    fn target(&self, _: &Profile, target: &mut Target) -> Result<(), WhatIfError> {
        target.completion = match self {
            Self::AtOnce => StreamCompletion::AtOnce,
            Self::RunAhead => StreamCompletion::HostWaits,
            // A model that was given with other parameters stays.
            Self::Bandwidth => match &target.completion {
                StreamCompletion::Modeled(_) => return Ok(()),
                _ => StreamCompletion::Modeled(Box::new(CompletionModel::of(&target.device))),
            },
        };
        Ok(())
    }

    fn is_other_job(&self) -> bool {
        *self != Self::AtOnce
    }

    fn leaves_out_rest(&self) -> bool {
        *self != Self::AtOnce
    }

    fn words(&self, target: &Target) -> Option<String> {
        match &target.completion {
            StreamCompletion::AtOnce => None,
            StreamCompletion::HostWaits => {
                Some("collectives complete when the host waits".to_owned())
            }
            StreamCompletion::Modeled(model) => {
                let parameters = model.to_string().replace('\n', "; ");
                Some(format!("collectives complete after modeled durations ({parameters})"))
            }
        }
    }
}
