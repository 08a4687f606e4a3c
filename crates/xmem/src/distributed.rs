//! Jobs on several processes that were recorded on the CPU.

use xmem_analyzer::Distributed;
use xmem_predict::{Confidence, PeakRange};
use xmem_types::{Diagnostics, Severity};

/// The code of the note.
const CODE: &str = "distributed-on-cpu";

/// Says that the memory of collectives is not that of a GPU, and lowers the confidence: with NCCL, buffers and streams are
/// others, and blocks are freed at other times. Peak reserved of a GPT on 8 processes was between 4.5 % too low (FSDP1)
/// and 2.6 % too high (FSDP2); other jobs were not measured.
pub(crate) fn doubt(kind: Distributed, range: &mut PeakRange, notes: &mut Diagnostics) {
    notes.report(CODE, Severity::Warning, None, || {
        format!(
            "the job uses {}, and was recorded on the CPU, where memory of collectives is not that of NCCL: peak reserved \
             of such jobs was 5 % too low to 3 % too high; `xmem profile --virtual-gpu NAME --ranks N -- torchrun \
             --nproc-per-node N ...` records it as it runs",
            kind.name()
        )
    });
    if matches!(range.confidence, Confidence::Certain | Confidence::Likely) {
        range.confidence = Confidence::Doubtful;
    }
}
