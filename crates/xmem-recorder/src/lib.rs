//! A command to a trace file: runs it with the hook on its path, watches it, streams what it exports.
//!
//! The hook is plain Python in `python/`, carried in the binary. Where it is found first on
//! `PYTHONPATH`, it redirects CUDA to the CPU, records a few iterations with PyTorch's profiler, and
//! ends the script. The two talk through a private folder (`session`): lines of JSON from the hook
//! (`message`), a file and a signal from here (`watch`), and the trace through a named pipe (`export`).
//!
//! What is in a trace is not known here: of what streams through, only the head is looked at, for the
//! summary (`head`).
#![forbid(unsafe_code)]
#![cfg_attr(
    unix,
    expect(
        clippy::disallowed_methods,
        reason = "runs a command with files and an environment of its own, and writes the trace"
    )
)]

mod error;
mod progress;
mod recorded;
mod request;

#[cfg(unix)]
mod encoder;
#[cfg(unix)]
mod export;
#[cfg(unix)]
mod head;
#[cfg(unix)]
mod hook;
#[cfg(unix)]
mod host;
#[cfg(unix)]
mod isolated;
#[cfg(unix)]
mod message;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod session;
#[cfg(unix)]
mod settings;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod verdict;
#[cfg(unix)]
mod watch;

pub use error::{Fate, RecordError};
pub use progress::Progress;
pub use recorded::{CutShort, Place, Recorded, Redirected};
pub use request::{Patience, Request, Shortage, Stacks};

/// Runs the command, records it, and writes the trace. `observer` hears what happens meanwhile.
///
/// # Errors
/// If there is nothing to write: the command cannot be run, the hook does not see PyTorch train, or
/// what was recorded is lost.
#[cfg(unix)]
pub fn record(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<Recorded, RecordError> {
    watch::run(request, observer)
}

/// Says that this needs a Unix.
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
