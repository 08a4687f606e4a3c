//! Scripts that decide by values which a virtual GPU does not compute: on a GPU they may take another branch, which was not
//! recorded.

use super::{Assessment, Doubt, Subject};
use crate::range::Confidence;
use xmem_analyzer::recording::VirtualGpu;

pub(super) const DOUBT: Doubt = Doubt { name: "unknown_branches", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    if subject.profile().virtual_gpu().is_some_and(VirtualGpu::decides_by_unknown_values) {
        assessment.lower_to(Confidence::Likely);
    }
}
