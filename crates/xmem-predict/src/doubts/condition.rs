//! Recordings whose events do not agree with each other, or whose sizes rest on values that nobody has bounded.

use super::{Assessment, Doubt, Subject};
use crate::range::Confidence;
use xmem_analyzer::integrity::Condition;
use xmem_analyzer::recording::VirtualGpu;

pub(super) const DOUBT: Doubt = Doubt { name: "condition", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let is_assumed = subject.profile().virtual_gpu().is_some_and(VirtualGpu::is_assumed);
    if is_assumed || assessment.integrity.condition() > Condition::Intact {
        assessment.lower_to(Confidence::Doubtful);
    }
}
