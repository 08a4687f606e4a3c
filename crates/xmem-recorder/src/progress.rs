//! The progress of a recording.

use std::time::Duration;
use xmem_types::Bytes;

/// An event of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress<'a> {
    /// A Python interpreter loaded the hook.
    Python {
        /// Its version.
        version: &'a str,
    },
    /// PyTorch was imported, and CUDA redirected.
    Torch {
        /// Its version.
        version: &'a str,
    },
    /// The profiler runs.
    Recording,
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
    /// A note for the user.
    Note(&'a str),
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
    /// The command is ended: it continued after its recording was saved.
    EndingCommand,
}
