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
        NoDevice => Usage XM0101 {
            title: "no device given",
            cause: "The answer depends on the memory of a GPU, and the command names no GPU.",
            example: "xmem replay trace.json.zst",
            fix:
                "Name a GPU with `--device t4-16g`, a size with `--capacity 24GiB`, or a file with `--device-file \
                 my.toml`. `xmem devices` lists the GPUs.",
        },
        #[error("unknown device `{name}`{question}")]
        #[diagnostic(help(
            "`xmem devices` lists the known GPUs; use --device-file for another GPU, or --capacity 24GiB for \
             any GPU with that much memory"
        ))]
        Unknown { name: String, question: String } => Usage XM0102 {
            title: "unknown device",
            cause: "No GPU in the list of xmem has this name.",
            example: "xmem replay trace.json.zst --device rtx3060-12x",
            fix:
                "Run `xmem devices` and use one of its names. For another GPU, write a device file for \
                 `--device-file`, or give its memory with `--capacity 24GiB`.",
        },
        #[error("`{name}` is several devices: {list}")]
        #[diagnostic(help("name one of them, for example {example}"))]
        Several { name: String, list: String, example: &'static str } => Usage XM0103 {
            title: "name of several devices",
            cause: "GPUs of this name exist with different memory, and the answer depends on the size.",
            example: "xmem replay trace.json.zst --device a100",
            fix: "Use the full name, for example `--device a100-40g`. `xmem devices` lists all names.",
        },
        #[error("cannot read the device file `{}`", shown(path))]
        #[diagnostic(help("check the path and the permissions of the file"))]
        Io { path: PathBuf, source: std::io::Error } => Usage XM0104 {
            title: "unreadable device file",
            cause: "The file of `--device-file` does not exist, cannot be read, or is not UTF-8 text.",
            example: "xmem replay trace.json.zst --device-file missing.toml",
            fix: "Check the path and the permissions of the file with `ls -l FILE`.",
        },
        #[error("invalid device file `{}`", shown(path))]
        #[diagnostic(help(
            "`xmem devices --format json` shows the fields of a device; the devices page of the guide has \
             an example"
        ))]
        InvalidFile { path: PathBuf, source: Box<DeviceFileError> } => Usage XM0105 {
            title: "invalid device file",
            cause: "The file of `--device-file` is not TOML, lacks a field, or has a value out of range.",
            example: "xmem replay trace.json.zst --device-file broken.toml",
            fix:
                "Compare the file with `xmem devices --format json`, which shows all fields of the devices that xmem \
                 has.",
        },
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
