//! CPU traces without shapes: operators have other sizes on a GPU, which follow from the shapes of their inputs.

use super::{Assessment, Doubt, Subject};
use crate::range::Confidence;

pub(super) const DOUBT: Doubt = Doubt { name: "without_shapes", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let profile = subject.profile();
    if profile.gpu.is_none() && !profile.has_shapes() {
        assessment.lower_to(Confidence::Likely);
    }
}
