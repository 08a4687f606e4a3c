//! `amsgrad=True` of Adam and AdamW: a third state per parameter, the maximum of all second moments, which is made behind
//! them in the first step (torch/optim/adam.py, `Adam._init_group`). The step itself needs no other memory: the maximum is
//! taken in place, and temporaries are made of it instead of the second moment (`_multi_tensor_adam`, `_single_tensor_adam`).

use super::{Values, WhatIf};
use crate::change::{Change, WhatIfError};
use crate::schedule::{AddedBlock, Schedule};
use crate::target::Target;
use std::sync::Arc;
use xmem_analyzer::{Profile, Role};
use xmem_types::RequestKind;

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "amsgrad",
    values: Values::Named(&[("true", "with it; as recorded is without")]),
    help: "amsgrad=True of Adam and AdamW: a third state of the size of each parameter",
    change: |value| match value {
        "true" => Some(Arc::new(Amsgrad)),
        _ => None,
    },
};

#[derive(Debug)]
struct Amsgrad;

/// The classes with this setting.
const CLASSES: [&str; 2] = ["Adam", "AdamW"];

impl Change for Amsgrad {
    fn target(&self, profile: &Profile, _: &mut Target) -> Result<(), WhatIfError> {
        let classes = profile.step_classes();
        if classes.is_empty() || classes.iter().any(|class| CLASSES.contains(class)) {
            return Ok(());
        }
        let (what_if, of) = (WHAT_IF.name, "Adam and AdamW");
        let recorded = classes.into_iter().collect::<Vec<_>>().join(" and ");
        Err(WhatIfError::OtherOptimizer { what_if, of, recorded })
    }

    /// Adds a block behind each second one of two states of one size. Counters of steps are single, or not on the GPU.
    fn schedule(&self, _: &Profile, _: &Target, schedule: &mut Schedule) {
        let mut added = Vec::new();
        let mut first = None;
        for (row, request) in schedule.requests.iter().enumerate() {
            let RequestKind::Alloc { size, stream } = request.kind else { continue };
            let block = schedule.block(request.block);
            if block.role != Role::OptimizerState {
                continue;
            }
            if first.take() == Some(size) {
                added.push(AddedBlock { behind: row, block: block.clone(), size, stream });
            } else {
                first = Some(size);
            }
        }
        schedule.add(added);
    }

    fn is_other_job(&self) -> bool {
        true
    }

    fn words(&self, _: &Target) -> Option<String> {
        Some("amsgrad, with a third state of the size of each parameter".to_owned())
    }
}
