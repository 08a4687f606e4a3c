//! `xmem.devices/1`.

use crate::bounds::BoundsDto;
use serde::Serialize;
use xmem::Device;

/// Known devices with the source of each number.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DevicesDocument<'a> {
    schema: &'static str,
    /// Devices.
    devices: Vec<DeviceDto<'a>>,
}

/// A device.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DeviceDto<'a> {
    /// Short name, for --device.
    name: &'a str,
    /// Name as torch.cuda.get_device_name prints it.
    title: &'a str,
    /// Other names.
    aliases: &'a [String],
    /// Total memory a process can see.
    memory_bytes: u64,
    /// Totals that were published for Linux; which one a process sees depends on the driver.
    memory_range_bytes: BoundsDto,
    /// Memory one process takes outside PyTorch's allocator.
    context_bytes: u64,
    /// What it may take: the driver, CUDA's release and the loaded kernels decide.
    context_range_bytes: BoundsDto,
    /// Total memory minus context.
    available_bytes: u64,
    /// Compute capability, for example 8.6.
    compute_capability: String,
    /// Streaming multiprocessors.
    sms: u32,
    /// Resident threads per multiprocessor.
    max_threads_per_sm: u32,
    /// True where GPU and host have one memory (Jetson): the context then counts what the host takes.
    shares_host_memory: bool,
    /// The source of each number.
    sources: SourcesDto<'a>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SourcesDto<'a> {
    /// Source.
    memory: &'a str,
    /// Source.
    context: &'a str,
    /// Source.
    compute_capability: &'a str,
    /// Source.
    sms: &'a str,
    /// Source.
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
