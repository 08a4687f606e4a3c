//! Devices that cannot be used.

use crate::error::{CliError, failures};
use crate::terminal::shown;
use miette::Diagnostic;
use std::path::PathBuf;
use thiserror::Error;
use xmem::devices::{DeviceFileError, DeviceNameError};

failures! {
    /// A device that cannot be used.
    #[derive(Debug, Error, Diagnostic)]
    pub(crate) enum DeviceFailure {
        #[error("no device given")]
        #[diagnostic(help(
            "add one of:\n\
             --device rtx3060-12g   a known GPU (`xmem devices` lists them)\n\
             --capacity 24GiB       any GPU with this much memory\n\
             --device-file my.toml  a GPU described in a file"
        ))]
        NoDevice => Usage,
        #[error("unknown device `{name}`{question}")]
        #[diagnostic(help(
            "`xmem devices` lists the known GPUs; use --device-file for another GPU, or --capacity 24GiB for \
             any GPU with that much memory"
        ))]
        Unknown { name: String, question: String } => Usage,
        #[error("`{name}` is several devices: {list}")]
        #[diagnostic(help("name one of them, for example {example}"))]
        Several { name: String, list: String, example: &'static str } => Usage,
        #[error("cannot read the device file `{}`", shown(path))]
        #[diagnostic(help("check the path and the permissions of the file"))]
        Io { path: PathBuf, source: std::io::Error } => Usage,
        #[error("invalid device file `{}`", shown(path))]
        #[diagnostic(help(
            "`xmem devices --format json` shows the fields of a device; the devices page of the guide has \
             an example"
        ))]
        InvalidFile { path: PathBuf, source: Box<DeviceFileError> } => Usage,
    }
}

impl From<DeviceNameError> for CliError {
    fn from(error: DeviceNameError) -> Self {
        let list = error.list();
        let question =
            error.question().map_or_else(String::new, |question| format!(": {question}"));
        match error {
            DeviceNameError::Unknown { name, .. } => DeviceFailure::Unknown { name, question },
            DeviceNameError::Several { name, devices } => {
                let example = devices.first().map_or("", |device| device.name.as_str());
                DeviceFailure::Several { name, list, example }
            }
        }
        .into()
    }
}
