//! `cargo xtask test`: everything that must hold, cheapest first.
//!
//! All steps use the same profile and features, so that the dependencies that clippy compiled serve
//! rustdoc, and those that the tests compiled serve everybody who runs one of them later.

use crate::error::Error;
use crate::run::{cargo, step};
use crate::{docs, tidy};

/// A part of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Step {
    /// Sources are formatted
    Format,
    /// Rules of this repository that no compiler checks
    Tidy,
    /// Clippy, with warnings denied
    Lints,
    /// Every test
    Tests,
    /// The API reference and the book build without warnings
    Docs,
}

impl Step {
    /// In the order in which they run.
    const ALL: [Self; 5] = [Self::Format, Self::Tidy, Self::Lints, Self::Tests, Self::Docs];

    fn run(self) -> Result<(), Error> {
        match self {
            Self::Format => step("format", || cargo(&["fmt", "--all", "--check"])),
            Self::Tidy => step("tidy", tidy::run),
            Self::Lints => step("lints", || {
                let lints = ["clippy", "--workspace", "--all-targets", "--locked"];
                cargo(&[&lints[..], &["--", "-D", "warnings"]].concat())
            }),
            Self::Tests => step("tests", || cargo(&["test", "--workspace", "--locked"])),
            Self::Docs => docs::run(),
        }
    }
}

/// Runs the steps that are named, or all if none is.
pub(crate) fn run(only: &[Step]) -> Result<(), Error> {
    let wanted = |step: &Step| only.is_empty() || only.contains(step);
    Step::ALL.into_iter().filter(wanted).try_for_each(Step::run)
}
