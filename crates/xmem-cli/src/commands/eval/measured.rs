//! The memory of a run on a GPU of this machine, sampled by NVIDIA's management library.
//!
//! The xMem paper (section 4.1) samples the used memory of the GPU every millisecond while the job runs, and takes the highest
//! sample less the one before the job.

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use xmem::Bytes;
use xmem_overlay::{Choice, Overlay, Writable};
use xmem_recorder::Interrupts;

/// The time between two samples.
const INTERVAL: Duration = Duration::from_millis(1);
/// NVIDIA's management library, as the driver installs it.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    /// The most memory of the GPU that was in use, less what was before.
    pub(super) peak: Bytes,
    pub(super) out_of_memory: bool,
    pub(super) took: Duration,
}

/// A run that was not measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum MeasureError {
    #[error("the memory of GPU {gpu} cannot be read: {source}")]
    Gpu { gpu: u32, source: NvmlError },
    #[error("the job cannot be started: {0}")]
    Start(#[from] io::Error),
    #[error("no folder for what the job writes: {0}")]
    Overlay(#[from] xmem_overlay::OverlayError),
    #[error("the job ended with {status}: {line}")]
    Ended { status: ExitStatus, line: String },
    #[error("interrupted")]
    Interrupted,
}

/// Runs a command on a GPU, by its number in nvidia-smi, and samples the memory of that. What the command writes is kept out
/// of the user's files, and what it prints goes to a file.
pub(super) fn measure(
    command: &[OsString],
    gpu: u32,
    printed: &Path,
    interrupts: Option<&Interrupts>,
) -> Result<Measured, MeasureError> {
    let failed = |source| MeasureError::Gpu { gpu, source };
    let library = Nvml::builder().lib_path(OsStr::new(LIBRARY)).init().map_err(failed)?;
    let device = library.device_by_index(gpu).map_err(failed)?;
    let used = || device.memory_info().map(|memory| memory.used);
    let (program, arguments) = (&command[0], &command[1..]);
    let helper = std::env::current_exe().ok();
    let nothing = Writable::Paths(Vec::new());
    let overlay =
        Overlay::prepare((program, arguments), &nothing, Choice::Auto, helper.as_deref())?;
    let output = File::create(printed)?;
    let mut command = overlay.command(program, arguments)?;
    command
        .envs(overlay.environment(|name| std::env::var_os(name)))
        // The order of nvidia-smi.
        .env("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        .env("CUDA_VISIBLE_DEVICES", gpu.to_string())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let before = used().map_err(failed)?;
    let started = Instant::now();
    let mut child = command.spawn()?;
    let mut most = before;
    let ended = loop {
        match used() {
            Ok(used) => most = most.max(used),
            Err(source) => break Err(failed(source)),
        }
        if let Some(status) = child.try_wait()? {
            break Ok(status);
        }
        if interrupts.is_some_and(Interrupts::arrived) {
            break Err(MeasureError::Interrupted);
        }
        thread::sleep(INTERVAL);
    };
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let status = ended?;
    let took = started.elapsed();
    let text = fs::read(printed).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let out_of_memory = !status.success() && text.contains("OutOfMemoryError");
    if !status.success() && !out_of_memory {
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        let line = xmem::types::printable(line.unwrap_or("nothing printed")).to_string();
        return Err(MeasureError::Ended { status, line });
    }
    Ok(Measured { peak: Bytes(most - before), out_of_memory, took })
}
