//! The GPU of a recording, in words.

pub(crate) mod json;

use xmem::GpuFacts;
use xmem::analyzer::GpuSource;

/// The name, the compute capability and the kind of file: `NVIDIA A100 (8.0), profiler trace`.
pub(crate) fn gpu(facts: &GpuFacts) -> String {
    let name = facts.name.as_deref().unwrap_or("a GPU that the file does not name");
    let capability = facts.compute_capability;
    let capability =
        capability.map_or(String::new(), |(major, minor)| format!(" ({major}.{minor})"));
    let file = match facts.source {
        GpuSource::Snapshot => "memory snapshot",
        _ => "profiler trace",
    };
    let kind = if facts.is_virtual { "a virtual " } else { "" };
    format!("{kind}{name}{capability}, {file}")
}

/// The peaks that the file has: `1.5 GiB allocated, 2.0 GiB reserved`.
pub(crate) fn peaks(facts: &GpuFacts) -> String {
    let peaks = [
        (facts.peak_allocated, "allocated"),
        (facts.peak_requested, "requested"),
        (facts.peak_reserved, "reserved"),
    ];
    let peaks = peaks.iter().filter_map(|(bytes, of)| Some(format!("{} {of}", (*bytes)?)));
    peaks.collect::<Vec<_>>().join(", ")
}
