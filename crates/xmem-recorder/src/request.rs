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
}
