//! The last steps of both readers, once every event is in its column.

use crate::builder::Builder;
use crate::columns::{DeviceKind, Trace, TraceHeader};
use crate::evidence::Evidence;
use xmem_types::{Diagnostics, Interner, Severity};

/// Categories of device activity (libkineto, ActivityType.cpp; the capitalized ones up to
/// PyTorch 1.11).
const DEVICE_CATEGORIES: [&str; 8] = [
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "concurrent_kernel",
    "Kernel",
    "Memcpy",
    "Memset",
    "mtia_runtime",
];

/// Puts the columns and the header together and adds the diagnostics about the whole.
pub(crate) fn finish(
    builder: Builder<Interner>,
    header: TraceHeader,
    diagnostics: &mut Diagnostics,
) -> Trace {
    diagnostics.report_many(
        "negative-duration",
        Severity::Note,
        None,
        builder.evidence.negative_durations,
        || "an event ends before it starts; its duration is set to zero".to_owned(),
    );
    let seen = |code| diagnostics.get(code).map_or(0, |known| known.count);
    let evidence = Evidence {
        dropped: seen("bad-event") + seen("bad-header") + seen("trailing-data"),
        truncated: seen("truncated") > 0,
        ..builder.evidence
    };
    let trace = Trace {
        header,
        strings: builder.strings,
        threads: builder.threads,
        signatures: builder.signatures,
        ops: builder.ops,
        python: builder.python,
        memory: builder.memory,
        flows: builder.flows,
        other_events: builder.other_events.into_iter().collect(),
        event_count: builder.event_count,
        evidence,
    };
    let activity: u64 =
        DEVICE_CATEGORIES.iter().filter_map(|category| trace.other_events.get(*category)).sum();
    let memory = trace.memory.device.iter().filter(|kind| **kind != DeviceKind::Cpu).count();
    if activity > 0 || memory > 0 {
        diagnostics.report("gpu-trace", Severity::Note, None, || {
            let some = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
            let seen = [
                some(activity, "device activities"),
                some(memory as u64, "device memory events"),
                trace.header.devices.first().map(ToString::to_string),
            ];
            let seen: Vec<String> = seen.into_iter().flatten().collect();
            format!("the job was recorded on a GPU ({})", seen.join(", "))
        });
    }
    trace
}
