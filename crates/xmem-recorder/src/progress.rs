//! What happens while a command is recorded.

use std::time::Duration;
use xmem_types::Bytes;

/// A piece of news from the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress<'a> {
    /// A Python loaded the hook.
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
    /// An iteration is over.
    Iteration {
        /// Which, counted from one.
        number: u32,
        /// What was counted, in words.
        of: &'a str,
        /// How long it took.
        took: Duration,
        /// Memory that the command's processes have resident.
        resident: Bytes,
    },
    /// Something that the user should know.
    Note(&'a str),
    /// A trace is being exported.
    Exporting {
        /// What has come so far, before compression.
        written: Bytes,
    },
    /// It has been.
    Exported,
    /// No Python has loaded the hook for so long that something may be wrong.
    NoHookYet {
        /// How long.
        since: Duration,
    },
    /// The recording is being stopped: the time is over.
    TimeIsOver,
    /// The recording is being stopped: memory is running out.
    MemoryIsShort,
    /// Ctrl-C was pressed: what there is is being saved.
    Interrupted,
    /// The command did not end after its recording was saved, and is being ended.
    EndingTheCommand,
}
