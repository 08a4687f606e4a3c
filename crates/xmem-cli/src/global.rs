//! Options of all commands.

use clap::{ArgAction, Args};

#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// Print the time of each stage on standard error; -vv prints all log messages
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "quiet", hide_short_help = true)]
    verbose: u8,
    /// Print no progress, and only the verdict of a text answer
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// The amount of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Stages,
    Everything,
}

impl Global {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Stages,
            (false, _) => Verbosity::Everything,
        }
    }
}
