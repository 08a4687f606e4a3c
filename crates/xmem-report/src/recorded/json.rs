//! The GPU of a recording, as JSON.

use serde::Serialize;
use xmem::{Bytes, GpuFacts};

/// What a recording of a GPU says about it.
#[derive(Serialize)]
pub(crate) struct RecordedDto<'a> {
    source: &'static str,
    /// True if the GPU was a virtual one.
    r#virtual: bool,
    gpu: Option<&'a str>,
    compute_capability: Option<String>,
    device_index: i16,
    devices: u64,
    allocated_before_bytes: u64,
    peak_allocated_bytes: Option<u64>,
    peak_requested_bytes: Option<u64>,
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
