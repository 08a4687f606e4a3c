//! `cargo xtask test`: everything that must hold, cheapest first.
//!
//! All steps use the same profile and features, so that the dependencies that clippy compiled serve
//! rustdoc, and those that the tests compiled serve everybody who runs one of them later.

use crate::{docs, tidy};
use std::path::PathBuf;
use xmem_task::run::{cargo, step};
use xmem_task::{Error, repo};

/// The libraries of tasks are part of the workspace; with them, so is the code of this program that calls them.
pub(crate) const FEATURES: &str = "--features=xtask/attack,xtask/clusters,xtask/corpus";

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
            Self::Format => step("format", format),
            Self::Tidy => step("tidy", tidy::run),
            Self::Lints => step("lints", || {
                let lints = ["clippy", "--workspace", "--all-targets", "--locked", FEATURES];
                cargo(&[&lints[..], &["--", "-D", "warnings"]].concat())
            }),
            Self::Tests => step("tests", || {
                cargo(&["test", "--workspace", "--locked", "--no-fail-fast", FEATURES])
            }),
            Self::Docs => docs::run(),
        }
    }
}

/// Runs the steps that are named, or all if none is.
pub(crate) fn run(only: &[Step]) -> Result<(), Error> {
    let wanted = |step: &Step| only.is_empty() || only.contains(step);
    Step::ALL.into_iter().filter(wanted).try_for_each(Step::run)
}

/// Checks the format of every source, and of the rules' files by name: `cargo fmt` does not find modules
/// that a macro declares.
fn format() -> Result<(), Error> {
    let declared_by_macro = |path: &PathBuf| {
        path.starts_with("crates/xmem-orchestrator/src/rules")
            && path.extension().is_some_and(|extension| extension == "rs")
    };
    let rules: Vec<PathBuf> = repo::files()?.into_iter().filter(declared_by_macro).collect();
    let rules = rules.iter().filter_map(|path| path.to_str());
    let arguments: Vec<&str> = ["fmt", "--all", "--", "--check"].into_iter().chain(rules).collect();
    cargo(&arguments)
}
