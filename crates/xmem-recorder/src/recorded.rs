//! A recording that was saved.

use crate::request::Shortage;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use xmem_types::Bytes;

/// What was saved, and where.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Where the trace is.
    pub place: Place,
    /// Iterations in it.
    pub iterations: u32,
    /// How long the command ran.
    pub took: Duration,
    /// Size of the file.
    pub size: Bytes,
    /// Size of the trace before compression.
    pub text: Bytes,
    /// Version of PyTorch.
    pub torch: Option<String>,
    /// Version of Python.
    pub python: Option<String>,
    /// What was redirected from CUDA to the CPU, as far as the trace says.
    pub redirected: Vec<Redirected>,
    /// Why there is less in it than was asked for, if there is.
    pub cut_short: Option<CutShort>,
    /// The most memory that the command's processes were seen to have resident.
    pub peak: Bytes,
}

/// Where a trace was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where it was asked for.
    Output(PathBuf),
    /// Beside what was there before: a recording that was cut short replaces nothing.
    Beside {
        /// The new recording.
        part: PathBuf,
        /// What was there before.
        kept: PathBuf,
    },
}

impl Place {
    /// The file with the recording.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::Output(path) | Self::Beside { part: path, .. } => path,
        }
    }
}

/// Calls of a kind that were redirected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirected {
    /// What was called.
    pub what: String,
    /// How often.
    pub times: u64,
}

/// Why a recording is not all that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutShort {
    /// The script came to its end, or ended itself, with another exit status than 0.
    Exit(ExitStatus),
    /// The script came to its end without an iteration.
    NothingTrained,
    /// An exception ended the script; in its words.
    Raised(String),
    /// A signal ended the script.
    Signal(String),
    /// Ctrl-C was pressed.
    Interrupted,
    /// The time was over.
    Timeout(Duration),
    /// Memory ran out.
    Memory(Shortage),
    /// The command ended, and a process that it left behind was still recording.
    LeftBehind,
    /// The process died while it exported: the end of the trace is missing.
    Truncated,
    /// A reason that only a newer hook knows.
    Unknown,
}
