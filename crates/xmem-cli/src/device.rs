//! The device that the arguments choose.

mod args;
mod error;

pub(crate) use args::{DeviceArgs, PlanDeviceArgs};
pub(crate) use error::DeviceFailure;

use crate::error::CliError;
use crate::input::{self, InputFailure, Kind};
use clap::builder::PossibleValue;
use std::io;
use std::path::Path;
use xmem::Device;

/// The device if none is named, where a device only decides how a recording of a CPU is lowered.
pub(crate) const DEFAULT: &str = "a100-40g";

/// The devices that a shell offers.
pub(crate) fn offered() -> Vec<PossibleValue> {
    let known = xmem::devices::devices().iter();
    known
        .map(|device| PossibleValue::new(device.name.as_str()).help(device.title.as_str()))
        .collect()
}

/// Finds the device that the arguments name, or the default one.
pub(crate) fn choose_or_default(args: &DeviceArgs) -> Result<Device, CliError> {
    match args {
        DeviceArgs { device: None, device_file: None, capacity: None } => {
            Ok(xmem::find(DEFAULT)?.clone())
        }
        named => choose(named),
    }
}

/// Finds the device by name, or reads its file.
pub(crate) fn choose(args: &DeviceArgs) -> Result<Device, CliError> {
    let known = match (&args.device, &args.device_file) {
        (Some(name), _) => Some(xmem::find(name)?.clone()),
        (None, Some(path)) => {
            let text = text(path)?;
            let device = Device::from_toml(&text).map_err(|source| DeviceFailure::InvalidFile {
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
        (None, None) => Err(DeviceFailure::NoDevice.into()),
    }
}

/// The text of a device file.
fn text(path: &Path) -> Result<String, CliError> {
    let io = |source| DeviceFailure::Io { path: path.to_owned(), source };
    let bytes = input::raw(path, Kind::Device, None).map_err(|failure| match failure {
        InputFailure::Io { source, .. } => CliError::from(io(source)),
        other => other.into(),
    })?;
    let no_text =
        |error: std::string::FromUtf8Error| io::Error::new(io::ErrorKind::InvalidData, error);
    String::from_utf8(bytes).map_err(|error| io(no_text(error)).into())
}
