//! The facts about a saved recording.

use crate::assumptions::DevicePeaks;
use crate::measures::AppliedMeasure;
use crate::request::{Engine, Shortage};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use xmem_types::Bytes;

/// A saved recording.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The file of the trace.
    pub destination: Destination,
    /// Iterations in it.
    pub iterations: u32,
    /// What of the script after them is in it.
    pub rest: Option<RecordedRest>,
    /// Duration of the command.
    pub took: Duration,
    /// Size of the file.
    pub size: Bytes,
    /// Size of the trace before compression.
    pub text: Bytes,
    /// Version of PyTorch.
    pub torch: Option<String>,
    /// Version of Python.
    pub python: Option<String>,
    /// The engine of the recorded process: [`Engine::Cpu`] or [`Engine::VirtualGpu`].
    pub engine: Engine,
    /// Calls that were redirected from CUDA to the CPU.
    pub redirected: Vec<RedirectedCalls>,
    /// True if the job has convolutions.
    pub has_convolutions: bool,
    /// The cuDNN library of the recorded environment, as the command says.
    pub cudnn: Option<PathBuf>,
    /// The peaks on a virtual GPU.
    pub peaks: Option<DevicePeaks>,
    /// Operators whose sizes follow from an assumption without bounds, with the assumption's name where there
    /// is one.
    pub unbounded: Vec<(String, Option<String>)>,
    /// What became of the measures that were requested; nothing of those that found no place.
    pub measures: Vec<AppliedMeasure>,
    /// The reason why it is incomplete; `None` if it is complete.
    pub cut_short: Option<CutShort>,
    /// The peak of the resident memory of the command's processes.
    pub peak: Bytes,
}

/// What is recorded of a script after the iterations that the profiler records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRest {
    /// Steps of optimizers in it.
    pub steps: u64,
    /// How it ended.
    pub end: RestEnd,
}

/// How the recording of the rest of a script ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestEnd {
    /// With the script.
    Script,
    /// With an exception of the script, at this place.
    Exception(Option<String>),
    /// Its time was up.
    Time,
    /// Nothing new followed for long.
    Settled,
    /// It was ended from outside.
    Stopped,
}

/// The file of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The requested file.
    Output(PathBuf),
    /// A file beside the existing one, which an incomplete recording does not replace.
    Beside {
        /// The new recording.
        part: PathBuf,
        /// The existing file.
        existing: PathBuf,
    },
}

impl Destination {
    /// The file with the recording.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        match self {
            Self::Output(path) | Self::Beside { part: path, .. } => path,
        }
    }
}

/// Redirected calls of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectedCalls {
    /// The function (`Tensor.to`).
    pub function: String,
    /// The number of calls.
    pub count: u64,
}

/// The reason why a recording is incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutShort {
    /// The script exited with another status than 0.
    Exit(ExitStatus),
    /// The script ended without an iteration.
    NothingTrained,
    /// The script ran as requested, and put nothing on the GPU.
    NothingOnGpu,
    /// An exception with this text ended the script.
    Raised(String),
    /// This signal ended the script.
    Signal(String),
    /// Ctrl-C was pressed.
    Interrupted,
    /// The time limit was reached.
    Timeout(Duration),
    /// Memory ran low or an allocation failed.
    Memory(Shortage),
    /// The command ended while a process that it had started was still recording.
    LeftBehind,
    /// The process ended during the export: the end of the trace is missing.
    Truncated,
    /// A reason of a newer hook.
    Unknown,
}
