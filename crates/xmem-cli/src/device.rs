//! The device that the arguments choose.

mod args;

pub(crate) use args::{DeviceArgs, PlanDeviceArgs};

use crate::error::CliError;
use crate::input::{self, Failed, Kind};
use std::io;
use std::path::Path;
use xmem::Device;

/// Finds the device by name, or reads its file.
pub(crate) fn choose(args: &DeviceArgs) -> Result<Device, CliError> {
    let known = match (&args.device, &args.device_file) {
        (Some(name), _) => Some(xmem::find(name)?.clone()),
        (None, Some(path)) => {
            let text = text(path)?;
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
        (Some(device), Some(memory)) => Ok(device.with_memory(memory, "command line (--capacity)")),
        (None, Some(memory)) => Ok(Device::custom(memory)),
        (None, None) => Err(CliError::NoDevice),
    }
}

/// The text of a device file.
fn text(path: &Path) -> Result<String, CliError> {
    let io = |source| CliError::DeviceFileIo { path: path.to_owned(), source };
    let bytes = input::raw(path, Kind::Device, None).map_err(|failed| match failed {
        Failed::Io(source) => io(source),
        other => input::error(path, Kind::Device, other),
    })?;
    let no_text =
        |error: std::string::FromUtf8Error| io::Error::new(io::ErrorKind::InvalidData, error);
    String::from_utf8(bytes).map_err(|error| io(no_text(error)))
}
