//! Diagnostics about what a trace lacks, and what that costs.

use crate::recording::{EndReason, Recording};
use xmem_trace::{DeviceKind, Trace};
use xmem_types::{Diagnostics, Severity, WithheldReason};

/// Reports what the recording lacks, and what that costs.
pub(crate) fn report(
    trace: &Trace,
    recording: Option<&Recording>,
    device: DeviceKind,
    notes: &mut Diagnostics,
) {
    let on = |kind| trace.memory.device.iter().filter(|d| **d == kind).count() as u64;
    let (cpu, cuda) = (on(DeviceKind::Cpu), on(DeviceKind::Cuda));
    let analysed = on(device);
    if trace.memory.is_empty() {
        notes.withhold(WithheldReason::NoMemoryEvents, 1, || {
            "the trace has no memory events: record with profile_memory=True".into()
        });
    } else if analysed == 0 {
        notes.withhold(WithheldReason::NoEventsOfDevice, 1, || {
            format!("the trace has no memory events of the analysed device ({cpu} of the host, {cuda} of GPUs)")
        });
    }
    cut_short(recording, notes);
    if device == DeviceKind::Cpu {
        notes.withhold(WithheldReason::GpuTrace, cuda, || {
            "the job was recorded on a GPU: its device memory events are left out here, and the \
             host's alone do not show what the job needs"
                .into()
        });
    }
    if trace.ops.is_empty() {
        notes.withhold(WithheldReason::NoOperators, 1, || {
            "the trace has no operators: memory cannot be told apart by what made it".into()
        });
        return;
    }
    if trace.signatures.len() <= 1 {
        notes.report("no-shapes", Severity::Warning, None, || {
            "input shapes were not recorded: gradients and parameters are told by lifetime alone, \
             and operator sizes on the GPU are less exact; record with record_shapes=True"
                .into()
        });
    }
    if trace.python.is_empty() && recording.is_some() {
        notes.report("no-python-stacks", Severity::Note, None, || {
            "Python stacks were not recorded: module paths and source lines are missing".into()
        });
    } else if trace.python.is_empty() {
        notes.report("no-python-stacks", Severity::Warning, None, || {
            "Python stacks were not recorded: module paths and source lines are missing, buffers \
             and data are told apart by order alone; record with with_stack=True"
                .into()
        });
    }
}

/// Reports a recording that lacks some of what it was to have.
fn cut_short(recording: Option<&Recording>, notes: &mut Diagnostics) {
    let ended = recording.and_then(|r| r.ended.as_ref());
    let Some(ended) = ended else { return };
    let why = match ended.reason {
        EndReason::Complete => return,
        EndReason::ScriptEnd => "the script came to its end before",
        EndReason::Exit => "the script called sys.exit",
        EndReason::Exception => "the script raised an exception",
        EndReason::Signal => "the script was ended by a signal",
        EndReason::Timeout => "it took longer than allowed",
        EndReason::Memory => "it took more memory than allowed",
        EndReason::Other => "the recorder says nothing that is known",
    };
    notes.report("recording-cut-short", Severity::Warning, None, || {
        let detail = ended.detail.as_ref().map_or(String::new(), |text| format!(" ({text})"));
        format!(
            "the recording has fewer iterations than were asked for: {why}{detail}. The answer is \
             about what was recorded"
        )
    });
}
