//! Scripts that ran out of memory on a virtual GPU, whose memory ends where that of the device does: what was recorded of them
//! may fit, and what they would have needed next is not known.

use super::{Assessment, Doubt, Subject};
use xmem_analyzer::recording::{EndReason, RestEnd};
use xmem_types::{Severity, WithheldReason};

pub(super) const DOUBT: Doubt = Doubt { name: "ran_out_of_memory", assess };

/// The exception of PyTorch's allocators (`torch.OutOfMemoryError`, before 2.5 `torch.cuda.OutOfMemoryError`).
const EXCEPTION: &str = "OutOfMemoryError";

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let Some(recording) = subject.prediction.profile().recording() else { return };
    let ended = recording.ended.as_ref().filter(|ended| ended.reason == EndReason::Exception);
    let rest = recording.rest.as_ref().filter(|rest| rest.end == RestEnd::Exception);
    // An answer about some iterations is not about what follows them.
    let rest = rest.filter(|_| subject.has_all_iterations());
    let of_rest = rest.and_then(|rest| rest.end_detail.as_deref());
    let detail = ended.and_then(|ended| ended.detail.as_deref()).or(of_rest).unwrap_or_default();
    if !detail.starts_with(EXCEPTION) || !assessment.memory.fits {
        return;
    }
    assessment.withheld.push(WithheldReason::RanOutOfMemory);
    assessment.notes.report("ran-out-of-memory", Severity::Warning, None, || {
        let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("the recorded script ran out of memory ({detail}): it needs more than was recorded of it")
    });
}
