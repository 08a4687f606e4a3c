//! Another implementation of the optimizer on the GPU (torch/optim/optimizer.py, `_default_to_fused_or_foreach`).

use super::{Values, WhatIf};
use crate::change::{Change, WhatIfError};
use crate::target::{OptimizerImpl, Target};
use std::sync::Arc;
use xmem_analyzer::Profile;

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "optimizer-impl",
    values: Values::Named(&[
        ("foreach", "whole parameter lists at once"),
        ("fused", "one kernel"),
        ("for-loop", "parameter by parameter"),
    ]),
    help: "the implementation of the optimizer on the GPU",
    change: |value| {
        Some(Arc::new(OptimizerImpl::ALL.into_iter().find(|kind| kind.name() == value)?))
    },
};

impl Change for OptimizerImpl {
    fn target(&self, _: &Profile, target: &mut Target) -> Result<(), WhatIfError> {
        target.optimizer = Some(*self);
        Ok(())
    }
}
