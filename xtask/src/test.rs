//! `cargo xtask test`: everything that must hold, cheapest first.
//!
//! Everything is compiled once, by Clippy's driver: the lints are those of what the tests run, and the reference is that of
//! the libraries which they are linked with. All steps use the same profile and features.

use crate::{docs, tidy};
use std::path::PathBuf;
use xmem_task::run::{cargo, cargo_with, step};
use xmem_task::{Error, repo};

/// The libraries of tasks and of the book are part of the workspace; with them, so is the code of this program that calls
/// them.
const FEATURES: &str = "--features=xtask/attack,xtask/book,xtask/clusters,xtask/corpus";

/// Clippy in the place of the compiler.
const CLIPPY: &str = "xtask/src/test/clippy.sh";

/// A part of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Step {
    /// Sources are formatted
    Format,
    /// Rules of this repository that no compiler checks
    Tidy,
    /// Everything compiles, with Clippy's warnings denied
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
            Self::Lints => step("lints", || cargo_test(&["--all-targets", "--no-run"], &[])),
            Self::Tests => step("tests", || cargo_test(&["--no-fail-fast"], &[])),
            Self::Docs => docs::run(),
        }
    }
}

/// Runs the steps that are named, or all if none is.
pub(crate) fn run(only: &[Step]) -> Result<(), Error> {
    let wanted = |step: &Step| only.is_empty() || only.contains(step);
    Step::ALL.into_iter().filter(wanted).try_for_each(Step::run)
}

/// `cargo test` of the workspace, compiled by Clippy's driver with warnings denied.
pub(crate) fn cargo_test(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), Error> {
    let clippy = repo::root().join(CLIPPY);
    let clippy = clippy.to_string_lossy();
    let all = [&["test", "--workspace", "--locked", FEATURES], arguments].concat();
    cargo_with(&all, &[&[("RUSTC_WORKSPACE_WRAPPER", &*clippy)], environment].concat())
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

#[cfg(test)]
mod tests {
    use super::{CLIPPY, FEATURES};

    /// With others, its stages would compile nearly everything a second time.
    #[test]
    fn ci_compiles_with_the_same_features_and_compiler() {
        let stages = include_str!("../../.ci/run");
        assert!(stages.contains(&format!("{FEATURES} \"$@\"")));
        assert!(stages.contains(&format!("RUSTC_WORKSPACE_WRAPPER=$PWD/{CLIPPY} ")));
    }
}
