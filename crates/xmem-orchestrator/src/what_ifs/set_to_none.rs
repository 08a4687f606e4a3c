//! `zero_grad(set_to_none=...)` (torch/optim/optimizer.py, `Optimizer.zero_grad`).

use super::{Values, WhatIf};
use crate::change::{Change, WhatIfError};
use crate::target::Target;
use std::sync::Arc;
use xmem_analyzer::Profile;

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "set-to-none",
    values: Values::Named(&[
        ("true", "they are freed: PyTorch's default since 2.0"),
        ("false", "they stay, as zeros"),
    ]),
    help: "let zero_grad free gradients (true) or keep them as zeroed tensors (false)",
    change: |value| Some(Arc::new(SetToNone { frees: value.parse().ok()? })),
};

#[derive(Debug)]
struct SetToNone {
    frees: bool,
}

impl Change for SetToNone {
    fn target(&self, _: &Profile, target: &mut Target) -> Result<(), WhatIfError> {
        target.set_to_none = self.frees;
        Ok(())
    }
}
