//! What a trace lacks, what that costs, and when it is too much for a verdict.
//!
//! A verdict is withheld if and only if some finding is [`Severity::Serious`].

use crate::facts::TraceFacts;
use xmem_types::{Diagnostics, Severity};

/// Reports what the trace lacks.
pub(crate) fn report(facts: &TraceFacts, notes: &mut Diagnostics) {
    let mut say = |code, severity, text: &str| {
        notes.report(code, severity, None, || text.to_owned());
    };
    if facts.device_memory_events > 0 {
        say(
            "gpu-trace",
            Severity::Serious,
            "the trace was recorded on a GPU: its device memory is not replayed, and its host \
             memory is not the job's. Record the same job on the CPU (no .cuda(), \
             ProfilerActivity.CPU)",
        );
    } else if facts.host_memory_events == 0 {
        say(
            "no-memory-events",
            Severity::Serious,
            "the trace has no memory events: record it with \
             torch.profiler.profile(profile_memory=True)",
        );
    } else if facts.operators == 0 {
        say(
            "no-operators",
            Severity::Serious,
            "the trace has no operators: record it with activities=[ProfilerActivity.CPU]",
        );
    }
    if facts.operators == 0 {
        return;
    }
    if facts.operators_with_shapes == 0 {
        say(
            "no-shapes",
            Severity::Warning,
            "argument shapes were not recorded: sizes that differ between CPU and GPU are \
             estimated less well. Record with record_shapes=True",
        );
    }
    if facts.python_calls == 0 {
        say(
            "no-python-stacks",
            Severity::Note,
            "Python stacks were not recorded: modules and source lines are unknown. Record with \
             with_stack=True",
        );
    }
}
