//! The range of an answer about a command that was recorded twice, or whose recording shows what another would.

use xmem_analyzer::Profile;
use xmem_predict::{Bounds, Confidence, PredictedMemory, UncertaintyEffect};
use xmem_profiles::Device;
use xmem_types::{Bytes, Diagnostics, Severity};

/// The uncertainty about values that a virtual GPU does not compute.
const ASSUMED_VALUES: &str = "assumed_values";

/// The uncertainty about the time at which work on the GPU is complete.
const GPU_TIMING: &str = "gpu_timing";

/// Extends the range to the peaks of the other recording, and to those of replays whose work on the GPU is complete
/// `later`, of which there may be none.
pub(crate) fn widen(
    profile: &Profile,
    mut later: Vec<(Bytes, Bytes)>,
    memory: &mut PredictedMemory,
    device: &Device,
    notes: &mut Diagnostics,
) {
    let Some(gpu) = profile.virtual_gpu() else { return };
    if let Some(lowest) = gpu.lowest_peaks() {
        extend(memory, ASSUMED_VALUES, &[lowest], device);
    }
    later.extend(gpu.run_ahead_peaks());
    if !later.is_empty() {
        extend(memory, GPU_TIMING, &later, device);
    } else if profile.rank().is_some() {
        notes.report("gpu-timing", Severity::Note, None, || {
            "collectives were complete at once; where the host runs ahead of the GPU, what they hold is released later, \
             and the peaks are higher: `xmem profile --run-ahead` gives the range"
                .to_owned()
        });
    }
}

/// Extends the range to these peaks of allocated and of reserved memory: at the lowest assumed shares, where the answer
/// itself is about the highest, or where work on the GPU is complete later. They are those of the recorded allocator and
/// capacity.
fn extend(
    memory: &mut PredictedMemory,
    name: &'static str,
    others: &[(Bytes, Bytes)],
    device: &Device,
) {
    let around = |peak: Bytes, others: &mut dyn Iterator<Item = Bytes>| {
        others.fold(Bounds { low: peak, high: peak }, |whole, other| Bounds {
            low: whole.low.min(other),
            high: whole.high.max(other),
        })
    };
    let allocated = around(memory.peak.allocated, &mut others.iter().map(|peaks| peaks.0));
    let reserved = around(memory.peak.reserved, &mut others.iter().map(|peaks| peaks.1));
    let effect = UncertaintyEffect { name, blocks: None, allocated, reserved };
    let other_verdict = memory.extend(effect, device.available_bounds());
    if let (Confidence::Certain, Some(confidence)) = (memory.range.confidence, other_verdict) {
        memory.range.confidence = confidence;
    }
}
