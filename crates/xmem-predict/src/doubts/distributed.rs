//! Jobs on several processes that were recorded on the CPU.

use super::{Assessment, Doubt, Subject};
use crate::range::Confidence;
use xmem_types::Severity;

pub(super) const DOUBT: Doubt = Doubt { name: "distributed", assess };

/// Says that the memory of collectives is not that of a GPU, and lowers the confidence: with NCCL, buffers and streams are
/// others, and blocks are freed at other times. Peak reserved of a GPT on 8 processes was between 4.5 % too low (FSDP1)
/// and 2.6 % too high (FSDP2); other jobs were not measured.
fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let profile = subject.profile();
    // What is made from a graph has the streams and buffers of NCCL.
    let is_from_graph = profile.recording().is_some_and(|recording| recording.graph.is_some());
    let was_computed = profile.gpu.is_none() && !is_from_graph;
    let Some(kind) = profile.distributed().filter(|_| was_computed) else { return };
    assessment.notes.report("distributed-on-cpu", Severity::Warning, None, || {
        format!(
            "the job uses {}, and was recorded on the CPU, where memory of collectives is not that of NCCL: peak reserved \
             of such jobs was 5 % too low to 3 % too high; `xmem profile --virtual-gpu NAME --ranks N -- torchrun \
             --nproc-per-node N ...` records it as it runs",
            kind.name()
        )
    });
    assessment.lower_to(Confidence::Doubtful);
}
