//! Gradients that are cleared at another place of the iteration than recorded (xMem paper, section 3.3).

use super::{Values, WhatIf};
use crate::change::{Change, WhatIfError};
use crate::target::{Target, ZeroGradPlace};
use std::sync::Arc;
use xmem_analyzer::Profile;

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "zero-grad",
    values: Values::Named(&[
        ("pos0", "just before backward"),
        ("pos1", "at the start of the iteration"),
    ]),
    help: "clear gradients at another place",
    change: |value| {
        let place = ZeroGradPlace::ALL.into_iter().find(|place| place.name() == value)?;
        Some(Arc::new(place))
    },
};

impl Change for ZeroGradPlace {
    fn target(&self, _: &Profile, target: &mut Target) -> Result<(), WhatIfError> {
        target.zero_grad = Some(*self);
        Ok(())
    }
}
