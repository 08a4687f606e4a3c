//! Jobs on several processes that were recorded on the CPU.

use xmem_analyzer::Distributed;
use xmem_predict::{Confidence, PeakRange};
use xmem_types::{Diagnostics, Severity};

/// The code of the note.
const CODE: &str = "distributed-on-cpu";

/// Says that the memory of collectives is not that of a GPU, and lowers the confidence: buffers, streams and the time at
/// which blocks are given back differ with NCCL. A GPT on 8 processes was 9 % too low (DDP) to 14 % too high (FSDP).
pub(crate) fn doubt(kind: Distributed, range: &mut PeakRange, notes: &mut Diagnostics) {
    notes.report(CODE, Severity::Warning, None, || {
        format!(
            "the job uses {}, and was recorded on the CPU, where memory of collectives is not that of NCCL: peaks may be \
             more than 10 % off; `xmem profile --virtual-gpu NAME --gpus N -- torchrun --nproc-per-node N ...` records \
             it as it runs",
            kind.name()
        )
    });
    if matches!(range.confidence, Confidence::Certain | Confidence::Likely) {
        range.confidence = Confidence::Doubtful;
    }
}
