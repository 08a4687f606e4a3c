//! A job that is compiled on the GPU, and was recorded eagerly.

use xmem_predict::{Bounds, Confidence, PredictedMemory, UncertaintyEffect};
use xmem_profiles::Device;
use xmem_types::{Bytes, Diagnostics, Severity};

/// The uncertainty about what the compiler does.
const TORCH_COMPILE: &str = "torch_compile";

/// The names that the note lists.
const MAX_NAMES: usize = 3;

/// By how much the peaks of a compiled job may differ from those of the eager one, in per cent. In nine
/// recordings of six jobs, peak reserved was 32 % less to 32 % more, peak allocated 31 % less to 34 % more
/// (docs/accuracy.md).
const PERCENT: u64 = 35;

/// Extends the range by what compilation may do, and lowers the confidence.
pub(crate) fn widen(
    memory: &mut PredictedMemory,
    names: &[String],
    device: &Device,
    notes: &mut Diagnostics,
) {
    let Some((first, others)) = names.split_first() else { return };
    let mut listed = format!("`{first}`");
    for name in others.iter().take(MAX_NAMES - 1) {
        listed += &format!(", `{name}`");
    }
    if names.len() > MAX_NAMES {
        listed += &format!(" and {} more", names.len() - MAX_NAMES);
    }
    notes.report("compiled-eagerly", Severity::Warning, None, || {
        format!(
            "the script compiles {listed} (torch.compile), and was recorded eagerly: compiled, it may need \
             {PERCENT} % less or more; `xmem profile --virtual-gpu` records it as it runs"
        )
    });
    let around = |peak: Bytes| Bounds {
        low: Bytes(peak.get() / 100 * (100 - PERCENT)),
        high: Bytes((peak.get() / 100).saturating_mul(100 + PERCENT)),
    };
    let (allocated, reserved) = (around(memory.peak.allocated), around(memory.peak.reserved));
    let effect = UncertaintyEffect { name: TORCH_COMPILE, blocks: None, allocated, reserved };
    let other_verdict = memory.extend(effect, device.available_bounds());
    if matches!(memory.range.confidence, Confidence::Certain | Confidence::Likely) {
        memory.range.confidence = other_verdict.unwrap_or(Confidence::Doubtful);
    }
}
