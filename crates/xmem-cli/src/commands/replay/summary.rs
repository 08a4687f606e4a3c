//! The summary of many answers: exit code and number of errors.

use crate::exit::Exit;
use crate::global::Verbosity;
use crate::terminal::say;
use xmem::Answer;
use xmem::predict::Origin;

/// The exit code and the counts to report at the end.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) exit: Exit,
    failures: usize,
    /// `true` if for some trace neither the command line nor the input gave allocator options.
    pub(super) conf_is_open: bool,
}

impl Default for Summary {
    fn default() -> Self {
        Self { exit: Exit::Fits, failures: 0, conf_is_open: false }
    }
}

impl Summary {
    pub(super) fn answered(&mut self, answer: &Answer) {
        self.exit = self.exit.max(answer.verdict.into());
        self.conf_is_open |= answer.setup.conf_from == Origin::Default;
    }

    pub(super) fn failed(&mut self, exit: Exit) {
        self.exit = self.exit.max(exit);
        self.failures += 1;
    }

    /// Prints the number of errors, if there was more than one trace.
    pub(super) fn print(&self, traces: usize, verbosity: Verbosity) {
        if self.failures > 0 && traces > 1 && verbosity != Verbosity::Quiet {
            let failures = self.failures;
            let errors = if failures == 1 { "error" } else { "errors" };
            say(&format!("note: {failures} {errors} among {traces} traces"));
        }
    }
}
