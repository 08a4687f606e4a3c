//! The GPU of a recording, in words and as part of other documents.

use serde::Serialize;
use xmem::analyzer::GpuSource;
use xmem::{Bytes, GpuFacts};

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

/// What a recording of a GPU says about it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RecordedDto<'a> {
    /// The kind of file: a profiler trace or a memory snapshot.
    #[cfg_attr(test, schemars(extend("enum" = ["trace", "snapshot"])))]
    source: &'static str,
    /// True if the GPU was a virtual one, on which kernels have no effect.
    r#virtual: bool,
    /// The name of the GPU, where the file has it.
    gpu: Option<&'a str>,
    /// Its compute capability, where the file has it.
    compute_capability: Option<String>,
    /// Its index among the GPUs of the process.
    device_index: i16,
    /// GPUs of which the file has memory; that of one is replayed.
    devices: u64,
    /// Bytes that were allocated before the recording began.
    allocated_before_bytes: u64,
    /// Recorded peak of allocated memory (traces).
    peak_allocated_bytes: Option<u64>,
    /// Recorded peak of requested memory (snapshots).
    peak_requested_bytes: Option<u64>,
    /// Recorded peak of reserved memory.
    peak_reserved_bytes: Option<u64>,
}

impl<'a> From<&'a GpuFacts> for RecordedDto<'a> {
    fn from(gpu: &'a GpuFacts) -> Self {
        let capability = gpu.compute_capability;
        Self {
            source: gpu.source.name(),
            r#virtual: gpu.is_virtual,
            gpu: gpu.name.as_deref(),
            compute_capability: capability.map(|(major, minor)| format!("{major}.{minor}")),
            device_index: gpu.index,
            devices: gpu.devices,
            allocated_before_bytes: gpu.allocated_before.get(),
            peak_allocated_bytes: gpu.peak_allocated.map(Bytes::get),
            peak_requested_bytes: gpu.peak_requested.map(Bytes::get),
            peak_reserved_bytes: gpu.peak_reserved.map(Bytes::get),
        }
    }
}
