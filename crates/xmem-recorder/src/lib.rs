//! A command to a trace file: runs it with the hook on its path, watches it, streams what it exports.
//!
//! The hook is plain Python in `python/`, carried in the binary. As the first entry of
//! `PYTHONPATH`, it redirects CUDA to the CPU or has PyTorch run on a virtual GPU (`engines`), records a few iterations with PyTorch's profiler, and
//! ends the script. The two processes communicate through a private folder (`session`): lines of JSON
//! from the hook (`message`), a file and a signal to it (`watch`), and the trace through a named pipe
//! (`export`).
//!
//! The command runs with the rights of this process, and is not trusted beyond that: it may write anything to
//! the folder and the pipes, so that every wait and every size has a limit, and what it exports must be a
//! trace.
//!
//! This crate does not interpret traces: it reads only the beginning and the end of the stream, for the
//! summary (`outline`).
#![forbid(unsafe_code)]
#![cfg_attr(
    unix,
    expect(
        clippy::disallowed_methods,
        reason = "runs a command with files and an environment of its own, and writes the trace"
    )
)]

mod assumptions;
mod error;
mod measures;
mod progress;
mod rank;
mod recorded;
mod request;

#[cfg(unix)]
mod added;
#[cfg(unix)]
mod base_names;
#[cfg(unix)]
mod conclusion;
#[cfg(unix)]
mod control;
#[cfg(unix)]
mod encoder;
#[cfg(unix)]
mod engines;
#[cfg(unix)]
mod export_stream;
mod exported_graph;
#[cfg(unix)]
mod graph;
#[cfg(unix)]
mod graph_file;
#[cfg(unix)]
mod hook;
#[cfg(unix)]
mod hook_file;
#[cfg(unix)]
mod host;
#[cfg(unix)]
mod interpreter;
#[cfg(unix)]
mod lines;
#[cfg(unix)]
mod memory;
#[cfg(unix)]
mod message;
#[cfg(unix)]
mod outline;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod part;
#[cfg(unix)]
mod process_exports;
#[cfg(unix)]
mod processes;
#[cfg(unix)]
mod rest;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod session;
#[cfg(unix)]
mod settings;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod snapshot;
#[cfg(unix)]
mod trace_name;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod watch;
mod wrapper;

#[cfg(unix)]
pub use added::add_metadata;
pub use assumptions::{Assumptions, DevicePeaks};
pub use error::{CommandEnd, RecordError};
pub use exported_graph::{ExportedGraph, GraphFacts};
pub use measures::{AppliedMeasure, Changes, Measure, MeasureInfo, ParseMeasureError, measures};
pub use progress::{MAX_SURVIVORS, Progress};
pub use rank::LoneRank;
pub use recorded::{CutShort, Destination, Recorded, RecordedRest, RedirectedCalls, RestEnd};
pub use request::{
    Engine, Float16, PlanFolder, PlanMark, PlanMemory, Purpose, Request, Shortage, Stacks,
    Timeouts, Timing, VaryingBatches, Weights,
};
#[cfg(unix)]
pub use signals::Interrupts;
pub use wrapper::wrapper;
pub use xmem_overlay::{Choice as OverlayChoice, Kept, Writable};
pub use xmem_virtual_gpu::{Capacity, Environments};

/// Runs the command, records it, and writes the trace. `observer` is called with the progress.
///
/// # Errors
/// If no trace can be written: the command cannot be run, the hook sees no training with PyTorch, or
/// the recording is lost.
#[cfg(unix)]
pub fn record(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<Recorded, RecordError> {
    if request.snapshot.is_some() && request.engine != Engine::VirtualGpu {
        return Err(RecordError::SnapshotOfTheCpu);
    }
    if request.capacity != Capacity::Unlimited && request.engine != Engine::VirtualGpu {
        return Err(RecordError::CapacityOfTheCpu);
    }
    watch::run(request, observer)
}

/// Runs the command to its end without recording it, and returns its status: on a virtual GPU
/// ([`Purpose::Run`]), or on the device that is there ([`Purpose::RunOnDevice`]). `observer` is called with the progress.
///
/// # Errors
/// If the command cannot be started, or there is no virtual GPU for it.
#[cfg(unix)]
pub fn run(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<std::process::ExitStatus, RecordError> {
    match request.purpose {
        Purpose::RunOnDevice => run::on_device(request),
        Purpose::Run | Purpose::Record | Purpose::ExportGraph => {
            run::on_virtual_gpu(request, observer)
        }
    }
}

/// Runs the command on the CPU until it has made a step ([`Purpose::ExportGraph`]), and writes the graph of that iteration.
/// `observer` is called with the progress.
///
/// # Errors
/// If there is no graph: the command cannot be run, the hook sees no training with PyTorch, or torch.export cannot export
/// it.
#[cfg(unix)]
pub fn export_graph(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<ExportedGraph, RecordError> {
    graph::export(request, observer)
}

/// Fails: running with a hook needs a Unix.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn export_graph(
    _request: &Request,
    _observer: &mut dyn FnMut(Progress<'_>),
) -> Result<ExportedGraph, RecordError> {
    Err(RecordError::NeedsUnix)
}

/// Fails: running with a hook needs a Unix.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn run(
    _request: &Request,
    _observer: &mut dyn FnMut(Progress<'_>),
) -> Result<std::process::ExitStatus, RecordError> {
    Err(RecordError::NeedsUnix)
}

/// The memory of the host, or of the control group that this process is in, that can be allocated without swapping.
#[cfg(unix)]
#[must_use]
pub fn available_memory() -> xmem_types::Bytes {
    host::Host::new().memory().available
}

/// Unlimited: nothing is recorded here.
#[cfg(not(unix))]
#[must_use]
pub fn available_memory() -> xmem_types::Bytes {
    xmem_types::Bytes(u64::MAX)
}

/// Fails: recording needs a Unix.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn record(
    _request: &Request,
    _observer: &mut dyn FnMut(Progress<'_>),
) -> Result<Recorded, RecordError> {
    Err(RecordError::NeedsUnix)
}

/// Notes no signal: nothing is recorded there.
#[cfg(not(unix))]
#[derive(Debug)]
pub struct Interrupts;

#[cfg(not(unix))]
impl Interrupts {
    /// Fails: recording needs a Unix.
    ///
    /// # Errors
    /// Always.
    pub fn watch() -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    /// Returns false.
    #[must_use]
    pub fn arrived(&self) -> bool {
        false
    }
}

/// Fails: recording needs a Unix.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn add_metadata(_recorded: &mut Recorded, _key: &str, _value: &str) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
