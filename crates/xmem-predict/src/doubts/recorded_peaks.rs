//! The peaks that a recording of a GPU has beside those of its replay.

use super::{Assessment, Doubt, Subject};
use crate::allocator::{AllocatorKind, AllocatorSetup, Origin};
use crate::memory::Peak;
use crate::prediction::Prediction;
use xmem_analyzer::{GpuRecording, GpuSource};
use xmem_simulator::{DeviceConfig, RequestIndex, outline};
use xmem_types::{Bytes, Diagnostics, Severity};

pub(super) const DOUBT: Doubt = Doubt { name: "recorded_peaks", assess };

fn assess(subject: &Subject<'_>, assessment: &mut Assessment) {
    let gpu = subject.profile().gpu.as_ref().filter(|_| subject.is_as_recorded());
    let Some(gpu) = gpu.filter(|_| subject.has_all_iterations()) else { return };
    let Assessment { memory, integrity, notes, .. } = assessment;
    let unreached = compare(gpu, subject.prediction.setup(), &memory.peak, notes);
    let unreached = unreached.filter(|&peak| !is_reached_there(gpu, subject, peak));
    // On a device that holds the recorded peak, too, the verdict does not depend on it.
    if unreached.is_some_and(|peak| memory.fits && peak > subject.device().available()) {
        integrity.add_unreached_peak(notes);
    }
}

/// Returns whether the replay reaches a recorded peak with the address space of the recorded GPU. Expandable segments reserve
/// as many addresses as the device has memory, and an eighth more: a job that needs nearly as much makes a second one.
fn is_reached_there(gpu: &GpuRecording, subject: &Subject<'_>, peak: Bytes) -> bool {
    let Prediction { setup, device, schedule, .. } = subject.prediction;
    let total = gpu.properties.memory.filter(|_| setup.has_expandable_segments());
    total.is_some_and(|total| {
        let device = DeviceConfig { address_total: Some(total), ..device.without_limit() };
        let work = schedule.workload(schedule.requests.len());
        outline(work, &setup.choice, &device, RequestIndex(0)).reserved >= peak
    })
}

/// Reports recorded peaks that the replay does not reach or exceeds. With options or another release that
/// the caller gave, they may differ. Returns the recorded peak of reserved
/// memory if the replay does not reach it although the recording shows all that was reserved.
fn compare(
    gpu: &GpuRecording,
    setup: &AllocatorSetup,
    peak: &Peak,
    notes: &mut Diagnostics,
) -> Option<Bytes> {
    let is_as_recorded = setup.conf_from != Origin::Given
        && setup.release_from != Origin::Given
        && setup.kind == AllocatorKind::Native
        && setup.memory_fraction.is_none();
    if !is_as_recorded {
        return None;
    }
    let differs = |recorded: Option<Bytes>, replayed| recorded.filter(|&bytes| bytes != replayed);
    // Where memory is short, convolutions take smaller workspaces.
    let is_short = peak.reserved != peak.ample_reserved;
    if let Some(recorded) = differs(gpu.peak_allocated, peak.allocated).filter(|_| !is_short) {
        notes.report("recorded-allocated-differs", Severity::Warning, None, || {
            format!(
                "at most {recorded} were allocated in the recording, and {} in the replay: blocks have \
                 other sizes there, because of {}",
                peak.allocated,
                match gpu.allocated_before {
                    Bytes::ZERO => "other options or another release of PyTorch",
                    _ => "memory that was cached before the recording began",
                }
            )
        });
    }
    if let Some(recorded) = differs(gpu.peak_reserved, peak.ample_reserved) {
        notes.report("recorded-reserved-differs", Severity::Note, None, || {
            let why = match (gpu.allocated_before > Bytes::ZERO, gpu.source) {
                (true, _) => "the allocator's state before the recording is unknown",
                (false, GpuSource::Trace) if !gpu.has_history => {
                    "the file does not say which options, release and streams the job ran with"
                }
                (false, _) => "addresses, streams or options of the job are not all in the file",
            };
            format!(
                "at most {recorded} were reserved in the recording, and {} in the replay: {why}",
                peak.ample_reserved
            )
        });
    }
    // What was cached before is reserved, and no allocation shows it.
    let shows_all = gpu.from_the_start && gpu.allocated_before == Bytes::ZERO;
    gpu.peak_reserved.filter(|&recorded| shows_all && recorded > peak.ample_reserved)
}
