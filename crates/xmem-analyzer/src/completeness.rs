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
    let is_gpu = device == DeviceKind::Cuda;
    let analyzed = on(device);
    if trace.memory.is_empty() {
        notes.withhold(WithheldReason::NoMemoryEvents, 1, || {
            "the trace has no memory events: record with profile_memory=True".into()
        });
    } else if analyzed == 0 {
        notes.withhold(WithheldReason::NoEventsOfDevice, 1, || {
            format!("the trace has no memory events of the analyzed device ({cpu} of the host, {cuda} of GPUs)")
        });
    }
    cut_short(recording, is_gpu, notes);
    if recording.and_then(|r| r.uses_gpu) == Some(false) {
        notes.withhold(WithheldReason::NothingOnGpu, 1, || {
            "the script put no tensor on a GPU while it was recorded: the memory is that of the host".into()
        });
    }
    if device == DeviceKind::Cpu {
        notes.withhold(WithheldReason::GpuTrace, cuda, || {
            "the job was recorded on a GPU: device memory events are ignored, and host memory \
             events alone do not show how much memory the job needs"
                .into()
        });
    }
    if trace.ops.is_empty() && is_gpu {
        notes.report("no-operators", Severity::Warning, None, || {
            "the trace has no operators: memory cannot be attributed to operators, and iterations are not \
             known"
                .into()
        });
        return;
    }
    if trace.ops.is_empty() {
        notes.withhold(WithheldReason::NoOperators, 1, || {
            "the trace has no operators: memory cannot be attributed to operators".into()
        });
        return;
    }
    if trace.memory.is_empty() {
        // Shapes and stacks cost nothing as long as there is no answer.
        cut_short(recording, is_gpu, notes);
        return;
    }
    if trace.signatures.len() <= 1 && is_gpu {
        notes.report("no-shapes", Severity::Note, None, || {
            "input shapes were not recorded: gradients and parameters are recognized by lifetime alone"
                .into()
        });
    } else if trace.signatures.len() <= 1 {
        notes.report("no-shapes", Severity::Warning, None, || {
            "input shapes were not recorded: gradients and parameters are recognized by lifetime alone, \
             and operator sizes on the GPU are less exact; record with record_shapes=True"
                .into()
        });
    }
    if trace.python.is_empty() && (recording.is_some() || is_gpu) {
        notes.report("no-python-stacks", Severity::Note, None, || {
            "Python stacks were not recorded: module paths and source lines are missing".into()
        });
    } else if trace.python.is_empty() {
        notes.report("no-python-stacks", Severity::Warning, None, || {
            "Python stacks were not recorded: module paths and source lines are missing, buffers \
             and data are distinguished by order alone; record with with_stack=True"
                .into()
        });
    }
}

/// Reports a recording that lacks some of what it was to have.
fn cut_short(recording: Option<&Recording>, is_gpu: bool, notes: &mut Diagnostics) {
    let ended = recording.and_then(|r| r.ended.as_ref());
    let Some(ended) = ended else { return };
    let why = match ended.reason {
        EndReason::Complete => return,
        EndReason::ScriptEnd => "the script ended first",
        EndReason::Exit => "the script called sys.exit",
        EndReason::Exception => "the script raised an exception",
        EndReason::Signal => "a signal ended the script",
        EndReason::Timeout => "the time limit was reached",
        EndReason::Memory => "the memory limit was reached",
        EndReason::Other => "the recorder gives a reason that this version does not know",
    };
    let in_one_line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let detail = ended.detail.as_ref().map(in_one_line);
    let detail = detail.map_or(String::new(), |text| format!(" ({text})"));
    let iterations = recording.and_then(|r| r.iterations.as_ref());
    let count = iterations.map(|iterations| iterations.count);
    let is_complete = iterations.is_some_and(|of| of.requested.is_some_and(|n| of.count >= n));
    if ended.reason == EndReason::ScriptEnd && is_complete {
        return;
    }
    if count == Some(0) && is_gpu && ended.reason == EndReason::ScriptEnd {
        // Nothing of it is translated, so that iterations matter to names alone.
        notes.report("no-iterations", Severity::Warning, None, || {
            "the script has no iteration that can be recognized, such as the step of an optimizer or the \
             backward pass of a loss: the answer is about the whole script, and what its memory is for is \
             less exact"
                .into()
        });
        return;
    }
    if count == Some(0) {
        notes.withhold(WithheldReason::NoIteration, 1, || {
            format!("the recording ended before the first iteration was complete: {why}{detail}")
        });
        return;
    }
    notes.report("recording-cut-short", Severity::Warning, None, || {
        format!(
            "the recording has fewer iterations than requested: {why}{detail}. The answer covers the \
             recorded iterations only"
        )
    });
}
