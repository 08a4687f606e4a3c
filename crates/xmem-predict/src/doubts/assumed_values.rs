//! Sizes that depend on values which a virtual GPU does not compute: the job was recorded twice, at the highest and at the
//! lowest assumed shares, of which the answer is about the highest.

use super::{Assessment, Doubt, Subject};
use xmem_analyzer::recording::VirtualGpu;

pub(super) const DOUBT: Doubt = Doubt { name: "assumed_values", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let recorded = subject.profile().virtual_gpu().filter(|_| subject.is_as_recorded());
    if let Some(lowest) = recorded.and_then(VirtualGpu::lowest_peaks) {
        assessment.extend_to("assumed_values", &[lowest], subject.device());
    }
}
