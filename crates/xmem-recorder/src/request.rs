//! What is to be recorded, and how far that may go.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use xmem_profiles::Device;
use xmem_types::Bytes;

/// A command to record.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program, and its arguments.
    pub command: (OsString, Vec<OsString>),
    /// The file that the trace goes to: compressed if it ends in `.zst` or `.gz`, else plain JSON.
    pub output: PathBuf,
    /// Iterations after which the script is ended.
    pub steps: NonZeroU32,
    /// Whether Python's stacks are recorded.
    pub stacks: Stacks,
    /// The GPU that the script is told of.
    pub device: Device,
    /// How long the command may run.
    pub timeout: Option<Duration>,
    /// How much memory the command's processes may have resident; without, what the host has.
    pub memory: Option<Bytes>,
    /// How long the command's processes may take for what they are asked to do.
    pub patience: Patience,
}

/// How long processes are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until a recording that was asked for begins to be exported. The hook is a handler of a signal,
    /// which Python runs when the operator under way is over.
    pub to_export: Duration,
    /// Until the command ends once its recording is saved.
    pub to_end: Duration,
    /// Until a process ends after SIGTERM.
    pub to_terminate: Duration,
    /// Until the user is told that no Python has loaded the hook.
    pub to_load: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            to_export: Duration::from_secs(10),
            to_end: Duration::from_secs(60),
            to_terminate: Duration::from_secs(3),
            to_load: Duration::from_secs(30),
        }
    }
}

/// Whether a trace has Python's stacks: they name modules and lines, and cost time and room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// It has.
    Recorded,
    /// It has not.
    Omitted,
}

/// Memory that was not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// More than was allowed.
    Limit {
        /// What was allowed.
        limit: Bytes,
        /// What the command's processes had resident.
        resident: Bytes,
    },
    /// Nearly all that the host, or the control group, has.
    Host {
        /// What the command's processes had resident.
        resident: Bytes,
        /// What there is in all.
        total: Bytes,
        /// What was left.
        available: Bytes,
    },
    /// The script asked for some, and was refused.
    Refused {
        /// What it asked for.
        needed: Bytes,
        /// The most that the command's processes were seen to have resident.
        resident: Bytes,
        /// What was allowed, if that was limited.
        limit: Option<Bytes>,
    },
}
