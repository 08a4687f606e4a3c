//! Mixed precision that was recorded on a CPU by the lists of its own autocast: CUDA's casts other operators. What differs is
//! modeled, and not bounded.

use super::{Assessment, Doubt, Subject};
use crate::range::Confidence;

pub(super) const DOUBT: Doubt = Doubt { name: "autocast", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let profile = subject.profile();
    let Some(recording) = profile.recording() else { return };
    let is_cast_otherwise = !recording.autocast.is_empty() && !recording.cuda_autocast_lists;
    if is_cast_otherwise && profile.gpu.is_none() {
        assessment.lower_to(Confidence::Likely);
    }
}
