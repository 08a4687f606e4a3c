//! The device that was asked for.

use crate::args::DeviceArgs;
use crate::complaint::Complaint;
use xmem::Device;

/// Finds or reads the device.
pub(crate) fn choose(args: &DeviceArgs) -> Result<Device, Complaint> {
    let known = match (&args.device, &args.device_file) {
        (Some(name), _) => Some(xmem::find(name)?.clone()),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path)
                .map_err(|source| Complaint::DeviceFileIo { path: path.clone(), source })?;
            let device = Device::from_toml(&text).map_err(|source| Complaint::DeviceFile {
                path: path.clone(),
                source: Box::new(source),
            })?;
            Some(device)
        }
        (None, None) => None,
    };
    match (known, args.capacity) {
        (Some(device), None) => Ok(device),
        (Some(device), Some(memory)) => Ok(with_memory(device, memory)),
        (None, Some(memory)) => Ok(Device::custom(memory)),
        (None, None) => Err(Complaint::NoDevice),
    }
}

fn with_memory(mut device: Device, memory: xmem::Bytes) -> Device {
    device.memory = memory;
    "given with --capacity".clone_into(&mut device.sources.memory);
    device
}
