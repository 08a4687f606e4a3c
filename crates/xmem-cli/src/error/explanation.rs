//! The explanation of an error: what `xmem explain` prints.
//!
//! A code stands beside the error that has it. It is never used for another error, also when its own is gone.

use crate::exit::Exit;

/// The explanation of an error, or of several with the same cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The code, for example `XM0101`.
    pub code: &'static str,
    /// The exit code of a program that the error ends.
    pub exit: Exit,
    /// The error in a few words.
    pub title: &'static str,
    /// The reason for the error, in sentences.
    pub cause: &'static str,
    /// A command that fails with it.
    pub example: &'static str,
    /// The next step, with the command or option for it in backticks.
    pub fix: &'static str,
}

/// The code of a command line that cannot be parsed.
pub(crate) const USAGE: &str = "XM0001";
