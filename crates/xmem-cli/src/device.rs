//! The device that the arguments choose.

use crate::args::DeviceArgs;
use crate::error::CliError;
use xmem::Device;

/// Finds the device by name, or reads its file.
pub(crate) fn choose(args: &DeviceArgs) -> Result<Device, CliError> {
    let known = match (&args.device, &args.device_file) {
        (Some(name), _) => Some(xmem::find(name)?.clone()),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path)
                .map_err(|source| CliError::DeviceFileIo { path: path.clone(), source })?;
            let device = Device::from_toml(&text).map_err(|source| CliError::DeviceFile {
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
        (None, None) => Err(CliError::NoDevice),
    }
}

fn with_memory(mut device: Device, memory: xmem::Bytes) -> Device {
    device.memory = memory;
    "command line (--capacity)".clone_into(&mut device.sources.memory);
    device
}
