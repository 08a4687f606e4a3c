//! Errors: the reasons why no recording was saved.

use crate::request::Shortage;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use thiserror::Error;
use xmem_types::{Bytes, printable, printable_path};

/// The reason why no recording was saved.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The platform has no named pipes and signals.
    #[error("recording a command needs Linux or macOS")]
    NeedsUnix,
    /// A limit of the GPU's memory is requested of the CPU.
    #[error("only a virtual GPU can be full: --enforce and --capacity limit its memory")]
    CapacityOfTheCpu,
    /// A memory snapshot is requested of the CPU, which has no allocator of CUDA's.
    #[error("only a recording on a virtual GPU has a memory snapshot")]
    SnapshotOfTheCpu,
    /// The output path exists and is not a plain file.
    #[error("`{}` is not a plain file", printable_path(path))]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The output cannot be written.
    #[error("cannot write `{}`", printable_path(path))]
    Output {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The temporary folder for the recording hook cannot be made or used.
    #[error("cannot set up the temporary folder for the recording hook")]
    Session {
        /// The cause.
        source: io::Error,
    },
    /// There is no place for what the command writes.
    #[error("cannot keep what the command writes out of your files")]
    Overlay {
        /// The cause.
        source: xmem_overlay::OverlayError,
    },
    /// The command cannot be run.
    #[error("cannot run `{program}`")]
    Spawn {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// An option of Python disables the hook.
    #[error("Python is started with `{option}`, which disables the recording hook")]
    HookDisabled {
        /// The option.
        option: String,
    },
    /// No Python interpreter loaded the hook.
    #[error("the command {end}, and no Python interpreter loaded the recording hook")]
    HookNotLoaded {
        /// The end of the command.
        end: CommandEnd,
    },
    /// A Python interpreter loaded the hook, but did not import PyTorch.
    #[error("the command {end} without importing torch{}", reason(failure.as_deref()))]
    NoTorch {
        /// The end of the command.
        end: CommandEnd,
        /// The error of a failed import, from the hook.
        failure: Option<String>,
    },
    /// A file or folder of the user's is imported in the place of PyTorch.
    #[error("`{}` was imported instead of PyTorch", printable_path(path))]
    Shadowed {
        /// The file or folder.
        path: PathBuf,
    },
    /// The command exported something else than a trace.
    #[error("the command exported {found} instead of a trace")]
    NotATrace {
        /// What was found, as a noun phrase.
        found: &'static str,
    },
    /// The export cannot be read.
    #[error("cannot read the trace that the command exported")]
    Export {
        /// The cause.
        source: io::Error,
    },
    /// The command began an export and wrote nothing.
    #[error("the command announced a trace, but wrote nothing for {} s", time.as_secs_f64())]
    Stalled {
        /// The wait for content.
        time: Duration,
    },
    /// The hook does not support this PyTorch.
    #[error("this PyTorch cannot be recorded: {text}")]
    Unsupported {
        /// The reason, from the hook.
        text: String,
    },
    /// The virtual GPU that was asked for cannot be had.
    #[error("no virtual GPU: {text}")]
    NoVirtualGpu {
        /// The reason, from the hook.
        text: String,
        /// Whether the reason is that PyTorch has no kernels for the device.
        no_kernels: bool,
    },
    /// The script changed its user, and its recording cannot be saved.
    #[error(
        "the script changed its user from {from} to {to} at {}, who cannot save the recording",
        printable(place)
    )]
    OtherUser {
        /// The number of the user at the start.
        from: u32,
        /// The number of the user afterwards.
        to: u32,
        /// The file and the line of the change.
        place: String,
    },
    /// PyTorch was imported, but no model ran.
    #[error("the command {end}, and no model ran that can be recorded")]
    NothingRan {
        /// The end of the command.
        end: CommandEnd,
        /// What helps where weights were missing, from the hook.
        missing: Option<String>,
    },
    /// The process ended before its recording was saved.
    #[error("the command {end} before its recording was saved, and the recording is lost")]
    Died {
        /// The end of the command.
        end: CommandEnd,
        /// Iterations that were lost.
        iterations: u32,
        /// The peak of the resident memory of the command's processes.
        peak: Bytes,
        /// Total memory of the host.
        total: Bytes,
    },
    /// An exception ended the script before an iteration was complete.
    #[error(
        "the script raised {text} before the first iteration was complete, and nothing was saved"
    )]
    Raised {
        /// The exception, from the hook.
        text: String,
    },
    /// The script was seen, and torch.export did not export it.
    #[error("no graph can be exported: {}", printable(text))]
    NoGraph {
        /// The reason, from the hook.
        text: String,
    },
    /// The hook could not save the recording.
    #[error("cannot save the recording: {text}")]
    Failed {
        /// The reason, from the hook.
        text: String,
    },
}

impl RecordError {
    /// Returns whether the user stopped the command (Ctrl-C).
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        let (Self::HookNotLoaded { end }
        | Self::NoTorch { end, .. }
        | Self::NothingRan { end, .. }
        | Self::Died { end, .. }) = self
        else {
            return false;
        };
        matches!(end, CommandEnd::Interrupted)
    }
}

fn reason(failure: Option<&str>) -> String {
    failure.map_or_else(String::new, |text| format!(": the import failed with {text}"))
}

/// The end of a command, as a phrase after "the command" when displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// It exited.
    Ended(ExitStatus),
    /// It was stopped at the time limit.
    Timeout(Duration),
    /// It was stopped because memory ran low.
    Memory(Shortage),
    /// It was interrupted (Ctrl-C).
    Interrupted,
}

impl std::fmt::Display for CommandEnd {
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
                write!(f, "was stopped at {resident} of memory; the limit is {limit}")
            }
            Self::Memory(Shortage::Host { resident, total, available }) => write!(
                f,
                "was stopped at {resident} of memory, with {available} of {total} available"
            ),
            Self::Memory(Shortage::Refused { needed, resident, .. }) => {
                write!(f, "could not allocate {needed} in addition to {resident} of memory")
            }
            Self::Interrupted => write!(f, "was interrupted"),
        }
    }
}
