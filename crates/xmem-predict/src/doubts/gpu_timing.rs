//! Jobs whose memory depends on when work on the GPU is complete: memory that several streams use can be used again only
//! then. On a virtual GPU, all work completes immediately.

use super::{Assessment, Doubt, Subject};
use crate::memory::Detail;
use crate::prediction::Prediction;
use xmem_orchestrator::{CompletionModel, StreamCompletion, Target, depends_on_completion};
use xmem_types::{Bytes, Severity};

pub(super) const DOUBT: Doubt = Doubt { name: "gpu_timing", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let profile = subject.profile();
    let Some(gpu) = profile.virtual_gpu().filter(|_| subject.is_as_recorded()) else { return };
    let mut later = later(subject);
    later.extend(gpu.run_ahead_peaks());
    if !later.is_empty() {
        assessment.extend_to("gpu_timing", &later, subject.device());
    } else if profile.rank().is_some() {
        assessment.notes.report("gpu-timing", Severity::Note, None, || {
            "collectives completed immediately; where the host runs ahead of the GPU, what they hold is released later, \
             and the peaks are higher: `xmem profile --run-ahead` gives the range"
                .to_owned()
        });
    }
}

/// Peaks of allocated and of reserved memory where work on the streams is complete later than recorded: the ends of
/// the ranges with the model's durations, and when the host waits for it. None if the recording does not show it, or
/// if nothing depends on it.
fn later(subject: &Subject<'_>) -> Vec<(Bytes, Bytes)> {
    let profile = subject.profile();
    if !depends_on_completion(profile) {
        return Vec::new();
    }
    let range = |completion: StreamCompletion| {
        let target = Target { completion, ..subject.target.clone() };
        let lowered = xmem_orchestrator::schedule(profile, &target, subject.convolutions);
        let setup = subject.prediction.setup().clone();
        let prediction = Prediction::new(profile, lowered, setup, &target.device);
        prediction.memory(subject.iterations, &Detail::default()).range
    };
    let model = CompletionModel::of(&subject.target.device);
    [StreamCompletion::Modeled(Box::new(model)), StreamCompletion::HostWaits]
        .map(range)
        .iter()
        .flat_map(|range| {
            let (allocated, reserved) = (range.allocated, range.reserved);
            [(allocated.low, reserved.low), (allocated.high, reserved.high)]
        })
        .collect()
}
