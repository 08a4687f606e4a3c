//! A device that is full: the recorded iterations run, as cached memory is released for them, and later ones may not.

use super::{Assessment, Doubt, Subject};
use crate::lengths::STEADY_ITERATIONS;
use crate::range::Confidence;
use xmem_types::Severity;

pub(super) const DOUBT: Doubt = Doubt { name: "full_device", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let memory = &assessment.memory;
    if !memory.fits || memory.allocator.retries == 0 || memory.coverage.has_all_steps() {
        return;
    }
    // Two iterations go on as the second one does, without what followed it.
    let without_rest = (subject.prediction.iteration_starts().len() == 2)
        .then(|| subject.prediction.without_rest());
    let prediction = without_rest.as_ref().unwrap_or(subject.prediction);
    // Iterations that are not alike say nothing about later ones.
    let Ok(run) = prediction.steady_run(STEADY_ITERATIONS) else { return };
    if run.fits() {
        return;
    }
    assessment.notes.report("full-device", Severity::Warning, None, || {
        format!(
            "the recorded iterations run on this device only as cached memory is released for them, and with {STEADY_ITERATIONS} \
             iterations like them the job runs out of memory: it needs {}",
            run.needed_capacity()
        )
    });
    assessment.lower_to(Confidence::MayFail);
}
