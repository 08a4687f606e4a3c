//! `xmem enter-overlay`: the process that becomes a recorded command.

use crate::exit::Exit;
use crate::terminal::say;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of the process that becomes a recorded command ([`xmem_overlay::enter`]).
#[derive(Debug, Args)]
pub(crate) struct EnterOverlayArgs {
    /// File that says what is covered
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Command with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Becomes the command of a recording, in a mount namespace; returns only if that fails.
pub(crate) fn run(args: &EnterOverlayArgs) -> Exit {
    let error = xmem_overlay::enter(&args.plan, &args.command);
    if error.is_empty() {
        return Exit::Fits;
    }
    say(&error);
    Exit::Unreadable
}
