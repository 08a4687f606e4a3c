//! Why nothing was saved.

use crate::request::Shortage;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use thiserror::Error;
use xmem_types::Bytes;

/// Why there is no recording.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The platform has no named pipes and signals.
    #[error("recording a command needs Linux or macOS")]
    NeedsUnix,
    /// There is something else than a file where the trace is to go.
    #[error("`{}` is not a plain file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The output cannot be written.
    #[error("cannot write `{}`", path.display())]
    Output {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder through which the hook is reached cannot be made or used.
    #[error("cannot set up the folder through which the hook is reached")]
    Session {
        /// Why.
        source: io::Error,
    },
    /// The command cannot be run.
    #[error("cannot run `{program}`")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Python is asked to leave the hook out.
    #[error("Python is started with `{option}`, which keeps the recording hook out")]
    Isolated {
        /// The option.
        option: String,
    },
    /// No Python loaded the hook.
    #[error("the command {fate}, and no Python in it loaded the recording hook")]
    NoHook {
        /// How the command ended.
        fate: Fate,
    },
    /// A Python loaded the hook, but never PyTorch.
    #[error("the command {fate}, and never imported torch")]
    NoTorch {
        /// How the command ended.
        fate: Fate,
    },
    /// There is a PyTorch that cannot be recorded.
    #[error("nothing can be recorded: {text}")]
    Unsupported {
        /// Why, in the hook's words.
        text: String,
    },
    /// PyTorch was there, but nothing was recorded.
    #[error("the command {fate}, and nothing of PyTorch was run in it that can be recorded")]
    NothingRan {
        /// How the command ended.
        fate: Fate,
    },
    /// The process died with the recording.
    #[error(
        "the command {fate} before its recording could be saved: the profiler's events died with it"
    )]
    Died {
        /// How the command ended.
        fate: Fate,
        /// Iterations that were lost.
        iterations: u32,
        /// The most memory that the command's processes were seen to have resident.
        peak: Bytes,
        /// What the host has.
        total: Bytes,
    },
    /// The hook could not save the recording.
    #[error("the recording could not be saved: {text}")]
    Failed {
        /// Why, in the hook's words.
        text: String,
    },
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// By itself.
    Ended(ExitStatus),
    /// It was ended, as the time was over.
    Timeout(Duration),
    /// It was ended, as memory ran out.
    Memory(Shortage),
    /// Ctrl-C was pressed.
    Interrupted,
}

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended(status) if status.success() => write!(f, "ended"),
            Self::Ended(status) if status.code().is_none() => {
                write!(f, "was killed by {}", status.to_string().replace("signal: ", "signal "))
            }
            Self::Ended(status) => {
                write!(f, "ended with {}", status.to_string().replace(": ", " "))
            }
            Self::Timeout(limit) => write!(f, "was stopped after {} s", limit.as_secs_f64()),
            Self::Memory(Shortage::Limit { limit, resident }) => {
                write!(f, "was stopped at {resident} of memory, of which it may have {limit}")
            }
            Self::Memory(Shortage::Host { resident, total, available }) => write!(
                f,
                "was stopped at {resident} of memory, as only {available} were left of {total}"
            ),
            Self::Memory(Shortage::Refused { needed, resident, .. }) => {
                write!(f, "was refused {needed} beside the {resident} of memory that it had")
            }
            Self::Interrupted => write!(f, "was interrupted"),
        }
    }
}
