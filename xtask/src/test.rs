//! `cargo xtask test`: everything that must hold, cheapest first.
//!
//! All steps use the same profile and features, so that what clippy compiled of the dependencies
//! serves rustdoc, and what the tests compiled serves everybody who runs one of them later.

use crate::error::Error;
use crate::run::{cargo, step};
use crate::{docs, tidy};

/// Format, tidy, lints, tests, documentation.
pub(crate) fn run() -> Result<(), Error> {
    step("format", || cargo(&["fmt", "--all", "--check"]))?;
    step("tidy", tidy::run)?;
    step("lints", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    })?;
    step("tests", || cargo(&["test", "--workspace", "--locked"]))?;
    docs::run()
}
