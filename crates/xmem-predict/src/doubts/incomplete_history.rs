//! Recordings of a GPU that began after memory was allocated: what was needed before is not known, so that the peaks are the
//! least that the job needs.

use super::{Assessment, Doubt, Subject};
use xmem_types::WithheldReason;

pub(super) const DOUBT: Doubt = Doubt { name: "incomplete_history", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    if subject.prediction.is_lower_bound() && assessment.memory.fits {
        assessment.withheld.push(WithheldReason::IncompleteHistory);
    }
}
