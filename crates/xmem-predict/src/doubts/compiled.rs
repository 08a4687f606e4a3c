//! A job that is compiled on the GPU, and was recorded eagerly.

use super::{Assessment, Doubt, Subject};
use crate::range::{Bounds, Confidence};
use xmem_types::Severity;

pub(super) const DOUBT: Doubt = Doubt { name: "compiled", assess };

/// The uncertainty about what the compiler does.
const TORCH_COMPILE: &str = "torch_compile";

/// The names that the note lists.
const MAX_NAMES: usize = 3;

/// By how much the peaks of a compiled job may differ from those of the eager one, in per cent. In nine
/// recordings of six jobs, peak reserved was 32 % less to 32 % more, peak allocated 31 % less to 34 % more
/// (docs/results/virtual-gpu.md).
const PERCENT: u64 = 35;

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let Some(recording) = subject.profile().recording() else { return };
    let Some((first, others)) = recording.compiled_eagerly.split_first() else { return };
    let mut listed = format!("`{first}`");
    for name in others.iter().take(MAX_NAMES - 1) {
        listed += &format!(", `{name}`");
    }
    if others.len() >= MAX_NAMES {
        listed += &format!(" and {} more", others.len() + 1 - MAX_NAMES);
    }
    assessment.notes.report("compiled-eagerly", Severity::Warning, None, || {
        format!(
            "the script compiles {listed} (torch.compile), and was recorded eagerly: compiled, it may need \
             {PERCENT} % less or more; `xmem profile --virtual-gpu` records it as it runs"
        )
    });
    let around = |peak| Bounds::around(peak, [100 - PERCENT, 100 + PERCENT], 100);
    let peak = &assessment.memory.peak;
    let bounds = (around(peak.allocated), around(peak.reserved));
    assessment.extend(TORCH_COMPILE, bounds, subject.device(), Confidence::Doubtful);
}
