//! Runs `xmem devices`.

use super::args::DevicesArgs;
use crate::commands::Outcome;
use crate::error::CliError;
use crate::exit::Exit;
use crate::format::PlainFormat;
use crate::{output, style};
use xmem::Device;
use xmem::devices::DeviceNameError;
use xmem_report::json::{self, DevicesDocument};
use xmem_report::text;

/// Runs the command.
pub(crate) fn run(args: &DevicesArgs) -> Outcome {
    let devices = wanted(args)?;
    let are_slices = devices.iter().all(|device| device.is_slice());
    let devices = devices.into_iter();
    let style = style::of_output(None);
    let page = match args.format {
        PlainFormat::Json => json::pretty(&DevicesDocument::new(devices)),
        PlainFormat::Text if are_slices => text::slices(devices, &style),
        PlainFormat::Text => text::devices(devices, &style),
    };
    output::write(page.as_bytes(), None)?;
    Ok(Exit::Fits)
}

/// The devices to list, each once.
fn wanted(args: &DevicesArgs) -> Result<Vec<&'static Device>, CliError> {
    if args.names.is_empty() {
        let all = xmem::devices::devices().iter();
        return Ok(all.filter(|device| device.is_slice() == args.mig).collect());
    }
    let mut found: Vec<&Device> = Vec::new();
    for name in &args.names {
        let named = match xmem::find(name) {
            Ok(device) => vec![device],
            Err(DeviceNameError::Several { devices, .. }) => devices,
            Err(error) => return Err(error.into()),
        };
        for device in named {
            if found.iter().all(|other| other.name != device.name) {
                found.push(device);
            }
        }
    }
    Ok(found)
}
