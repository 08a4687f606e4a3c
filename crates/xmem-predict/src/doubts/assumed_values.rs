//! Sizes that depend on values which a virtual GPU does not compute. Either the job was recorded twice, at the highest and at
//! the lowest assumed shares, of which the answer is about the highest; or they were taken for the largest possible: then a
//! job that fits does so whatever the values are, and nothing is known of one that does not fit.

use super::{Assessment, Doubt, Subject};
use crate::range::Confidence;
use xmem_analyzer::recording::VirtualGpu;
use xmem_types::WithheldReason;

pub(super) const DOUBT: Doubt = Doubt { name: "assumed_values", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let Some(gpu) = subject.profile().virtual_gpu() else { return };
    let recorded = Some(gpu).filter(|_| subject.is_as_recorded());
    if let Some(lowest) = recorded.and_then(VirtualGpu::lowest_peaks) {
        assessment.extend_to("assumed_values", &[lowest], subject.device());
    }
    if gpu.is_upper_bound() {
        if assessment.memory.fits {
            assessment.lower_to(Confidence::Likely);
        } else {
            assessment.withheld.push(WithheldReason::AssumedSizes);
        }
    }
}
