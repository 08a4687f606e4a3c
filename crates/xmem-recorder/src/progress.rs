//! The progress of a recording.

use crate::request::Engine;
use std::path::Path;
use std::time::Duration;
use xmem_overlay::Kept;
use xmem_types::Bytes;

/// Processes that are named in [`Progress::StillRunning`].
pub const MAX_SURVIVORS: usize = 5;

/// An event of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress<'a> {
    /// A Python interpreter loaded the hook.
    Python {
        /// Its version.
        version: &'a str,
    },
    /// PyTorch was imported, with an engine in place of a GPU.
    Torch {
        /// Its version.
        version: &'a str,
        /// The engine: [`Engine::Cpu`] or [`Engine::VirtualGpu`].
        engine: Engine,
    },
    /// The profiler runs.
    Recording,
    /// A model is called for the first time.
    Model {
        /// Its class.
        name: &'a str,
        /// Its parameters.
        parameters: u64,
        /// Their size.
        size: Bytes,
    },
    /// The command runs; sent every second until a trace is exported.
    Running {
        /// Time since the start.
        elapsed: Duration,
        /// Resident memory of the command's processes.
        resident: Bytes,
    },
    /// An iteration has ended.
    Iteration {
        /// Its number, from one.
        number: u32,
        /// The counted events (`optimizer steps`).
        of: &'a str,
        /// Its duration.
        took: Duration,
        /// Resident memory of the command's processes.
        resident: Bytes,
    },
    /// The script goes on after the recorded iterations.
    Rest,
    /// A note for the user.
    Note(&'a str),
    /// A measure was applied to so many places, or to none for a reason.
    Measure {
        /// Its name.
        name: &'a str,
        /// The places.
        places: u64,
        /// The places in words, or the reason.
        text: &'a str,
    },
    /// A file or folder of the user's hides a module that PyTorch imports.
    Shadowed {
        /// The module.
        module: &'a str,
        /// The file or folder.
        path: &'a Path,
    },
    /// The hook has more notes than this limit; the others are not passed on.
    TooManyNotes {
        /// The limit.
        limit: u32,
    },
    /// More traces are exported than are read.
    TooManyExports,
    /// The export of a process is not a trace.
    ExportIgnored {
        /// The process.
        process: u32,
        /// What was found, as a noun phrase.
        found: &'a str,
    },
    /// Processes that the command started outlive it, and are left running.
    StillRunning {
        /// Their ids and names, at most [`MAX_SURVIVORS`](crate::MAX_SURVIVORS).
        processes: &'a [(u32, String)],
        /// The number of all of them.
        count: usize,
    },
    /// A trace is being exported.
    Exporting {
        /// Its size so far, before compression.
        written: Bytes,
    },
    /// All traces have been exported.
    Exported,
    /// No Python interpreter has loaded the hook within the time that is usual.
    HookNotLoaded {
        /// Time since the start.
        elapsed: Duration,
    },
    /// The time limit is reached: the recording so far is saved.
    TimeLimitReached,
    /// Memory is running low: the recording so far is saved.
    MemoryLow,
    /// Ctrl-C was pressed: the recording so far is saved.
    Interrupted,
    /// The command has ended, and what it wrote is kept out of the files of the user.
    Kept(&'a Kept),
    /// The command's writes cannot be redirected here, for a reason: they are refused, as far as Python makes them.
    WritesRefused {
        /// The reason.
        reason: &'a str,
    },
    /// The command is ended: it continued after its recording was saved.
    EndingCommand,
}
