//! `xmem.devices/1`.

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
    context_bytes: u64,
    available_bytes: u64,
    compute_capability: String,
    sms: u32,
    max_threads_per_sm: u32,
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
    pub fn new(devices: &'a [Device]) -> Self {
        Self { schema: "xmem.devices/1", devices: devices.iter().map(device).collect() }
    }
}

fn device(device: &Device) -> DeviceDto<'_> {
    let sources = &device.sources;
    DeviceDto {
        name: &device.name,
        title: &device.title,
        aliases: &device.aliases,
        memory_bytes: device.memory.get(),
        context_bytes: device.context.get(),
        available_bytes: device.available().get(),
        compute_capability: device.compute_capability.to_string(),
        sms: device.sms,
        max_threads_per_sm: device.max_threads_per_sm,
        sources: SourcesDto {
            memory: &sources.memory,
            context: &sources.context,
            compute_capability: &sources.compute_capability,
            sms: &sources.sms,
            max_threads_per_sm: &sources.max_threads_per_sm,
        },
    }
}
