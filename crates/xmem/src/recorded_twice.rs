//! The range of an answer about a command that was recorded twice, or whose recording shows what another would.

use xmem_analyzer::Profile;
use xmem_predict::{Bounds, Confidence, PredictedMemory, UncertaintyEffect};
use xmem_profiles::Device;
use xmem_types::{Bytes, Diagnostics, Severity};

/// The uncertainty about values that a virtual GPU does not compute.
const ASSUMED_VALUES: &str = "assumed_values";

/// The uncertainty about the time at which work on the GPU is complete.
const GPU_TIMING: &str = "gpu_timing";

/// Extends the range to the peaks of the other recording, if there is one; else to those of a replay with a host that
/// runs ahead of the GPU.
pub(crate) fn widen(
    profile: &Profile,
    run_ahead: Option<(Bytes, Bytes)>,
    memory: &mut PredictedMemory,
    device: &Device,
    notes: &mut Diagnostics,
) {
    let Some(gpu) = profile.virtual_gpu() else { return };
    if let Some(lowest) = gpu.lowest_peaks() {
        extend(memory, ASSUMED_VALUES, lowest, device);
    }
    if let Some(peaks) = gpu.run_ahead_peaks().or(run_ahead) {
        extend(memory, GPU_TIMING, peaks, device);
    } else if profile.rank().is_some() {
        notes.report("gpu-timing", Severity::Note, None, || {
            "collectives were complete at once; where the host runs ahead of the GPU, what they hold is released later, \
             and the peaks are higher: `xmem profile --run-ahead` gives the range"
                .to_owned()
        });
    }
}

/// Extends the range to these peaks of allocated and of reserved memory: at the lowest assumed shares, where the answer
/// itself is about the highest, or with a host that runs ahead of the GPU. They are those of the recorded allocator and
/// capacity.
fn extend(
    memory: &mut PredictedMemory,
    name: &'static str,
    other: (Bytes, Bytes),
    device: &Device,
) {
    let between =
        |peak: Bytes, other: Bytes| Bounds { low: peak.min(other), high: peak.max(other) };
    let allocated = between(memory.peak.allocated, other.0);
    let reserved = between(memory.peak.reserved, other.1);
    let effect = UncertaintyEffect { name, blocks: None, allocated, reserved };
    let other_verdict = memory.extend(effect, device.available_bounds());
    if let (Confidence::Certain, Some(confidence)) = (memory.range.confidence, other_verdict) {
        memory.range.confidence = confidence;
    }
}
