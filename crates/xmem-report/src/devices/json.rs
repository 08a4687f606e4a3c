//! `xmem.devices/1`.

use crate::bounds::BoundsDto;
use serde::Serialize;
use xmem::Device;

/// Devices with the source of each number.
#[derive(Serialize)]
pub struct DevicesDocument<'a> {
    schema: &'static str,
    devices: Vec<DeviceDto<'a>>,
}

#[derive(Serialize)]
struct DeviceDto<'a> {
    name: &'a str,
    title: &'a str,
    aliases: &'a [String],
    memory_bytes: u64,
    memory_range_bytes: BoundsDto,
    context_bytes: u64,
    context_range_bytes: BoundsDto,
    available_bytes: u64,
    compute_capability: String,
    sms: u32,
    max_threads_per_sm: u32,
    shares_host_memory: bool,
    sources: SourcesDto<'a>,
}

#[derive(Serialize)]
struct SourcesDto<'a> {
    memory: &'a str,
    context: &'a str,
    compute_capability: &'a str,
    sms: &'a str,
    max_threads_per_sm: &'a str,
}

impl<'a> DevicesDocument<'a> {
    /// The document of some devices, in their order.
    #[must_use]
    pub fn new(devices: impl IntoIterator<Item = &'a Device>) -> Self {
        Self { schema: "xmem.devices/1", devices: devices.into_iter().map(device).collect() }
    }
}

fn device(device: &Device) -> DeviceDto<'_> {
    let sources = &device.sources;
    DeviceDto {
        name: &device.name,
        title: &device.title,
        aliases: &device.aliases,
        memory_bytes: device.memory.get(),
        memory_range_bytes: (device.memory, device.memory + device.tolerance.memory_more).into(),
        context_bytes: device.context.get(),
        context_range_bytes: device.context_bounds().into(),
        available_bytes: device.available().get(),
        compute_capability: device.compute_capability.to_string(),
        sms: device.sms,
        max_threads_per_sm: device.max_threads_per_sm,
        shares_host_memory: device.shares_host_memory,
        sources: SourcesDto {
            memory: &sources.memory,
            context: &sources.context,
            compute_capability: &sources.compute_capability,
            sms: &sources.sms,
            max_threads_per_sm: &sources.max_threads_per_sm,
        },
    }
}
