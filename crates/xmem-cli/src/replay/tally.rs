//! What many answers come to.

use crate::args::Verbosity;
use crate::exit::Exit;
use std::io::{self, Write};
use xmem::{Answer, Origin};

/// What is to be told at the end.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) exit: Exit,
    failures: usize,
    /// For some trace, nobody gave options of the allocator.
    pub(super) conf_is_open: bool,
}

impl Default for Tally {
    fn default() -> Self {
        Self { exit: Exit::Fits, failures: 0, conf_is_open: false }
    }
}

impl Tally {
    pub(super) fn answered(&mut self, answer: &Answer) {
        self.exit = self.exit.max(answer.verdict.into());
        self.conf_is_open |= answer.setup.conf_from == Origin::Default;
    }

    pub(super) fn failed(&mut self, exit: Exit) {
        self.exit = self.exit.max(exit);
        self.failures += 1;
    }

    /// Says how many errors are somewhere above, if there were several things to do.
    pub(super) fn say(&self, traces: usize, verbosity: Verbosity) {
        if self.failures > 0 && traces > 1 && verbosity != Verbosity::Quiet {
            let failures = self.failures;
            let errors = if failures == 1 { "error" } else { "errors" };
            // Nothing can be done when standard error itself is closed.
            let _ = writeln!(io::stderr(), "note: {failures} {errors} among {traces} traces");
        }
    }
}
