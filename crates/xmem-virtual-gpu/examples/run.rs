//! Runs a command on a virtual GPU: `cargo run -p xmem-virtual-gpu --example run -- h100-80g python train.py`
//!
//! A number of devices may follow the name: `h100-80g:8`. The exit status is the command's.
#![allow(clippy::disallowed_methods, reason = "a program with arguments and an environment")]
#![allow(clippy::print_stderr, reason = "a program with messages")]

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use xmem_tempfiles::PrivateFolder;
use xmem_virtual_gpu::{Environment, VirtualGpu};

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                eprintln!("  caused by: {cause}");
                source = cause.source();
            }
            ExitCode::from(125)
        }
    }
}

fn run() -> Result<u8, Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let usage = "usage: run DEVICE[:COUNT] PYTHON [ARGUMENT...]";
    let device = arguments.next().and_then(|name| name.into_string().ok()).ok_or(usage)?;
    let command: Vec<OsString> = arguments.collect();
    let (python, arguments) = command.split_first().ok_or(usage)?;
    let (name, count) = device.split_once(':').unwrap_or((&device, "1"));
    let device = xmem_devices::find(name)?.clone();
    let paths = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let libraries: Vec<PathBuf> = env::split_paths(&paths).collect();
    let environment = Environment::of_python(Path::new(python))?.with_libraries(libraries);
    let folder = PrivateFolder::for_programs()?;
    let gpu = VirtualGpu { devices: count.parse()?, ..VirtualGpu::new(device) };
    let preload = gpu.prepare(&environment.examine()?, folder.path())?;
    for note in &preload.notes {
        eprintln!("note: {note}");
    }
    let mut command = Command::new(python);
    command.args(arguments);
    preload.apply(&mut command, env::var_os("LD_PRELOAD").as_deref());
    let status = command.status()?;
    for call in preload.log.read()? {
        eprintln!("log: {call:?}");
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
