//! A device that is full: the recorded iterations run, as cached memory is released for them, and later ones may not.

use super::{Assessment, Doubt, Subject};
use crate::coverage::CoveredExtent;
use crate::lengths::STEADY_ITERATIONS;
use crate::range::Confidence;
use xmem_types::Severity;

pub(super) const DOUBT: Doubt = Doubt { name: "full_device", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let memory = &assessment.memory;
    // A script that was recorded to its end has no later iterations.
    let is_whole = memory.coverage.extent == CoveredExtent::Whole;
    if !memory.fits || memory.allocator.retries == 0 || is_whole {
        return;
    }
    // Iterations that are not alike say nothing about later ones.
    let Ok(run) = subject.prediction.steady_run(STEADY_ITERATIONS) else { return };
    if run.fits() {
        return;
    }
    assessment.notes.report("full-device", Severity::Warning, None, || {
        format!(
            "the recorded iterations run on this device only as cached memory is released for them, and with {STEADY_ITERATIONS} \
             iterations like them the job runs out of memory: it needs {}",
            run.min_capacity()
        )
    });
    assessment.lower_to(Confidence::MayFail);
}
