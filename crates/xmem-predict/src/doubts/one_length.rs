//! Language models whose recorded batches all have one length.

use super::{Assessment, Doubt, Subject};
use xmem_types::Severity;

pub(super) const DOUBT: Doubt = Doubt { name: "one_length", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let Some(length) = subject.prediction.single_length() else { return };
    if matches!(assessment.memory.coverage.batches.lengths.as_slice(), [_]) {
        // All batches of the script have it.
        return;
    }
    assessment.notes.report("one-sequence-length", Severity::Note, None, || {
        format!(
            "all recorded iterations have sequence length {length}; if lengths vary, the peak depends on \
             their order: record with `xmem profile --vary seq=A..B` and replay with `--vary seq=A..B`"
        )
    });
}
