//! Tasks that need a feature of this program which is off by default.

#[cfg(not(all(feature = "book", feature = "dist")))]
use xmem_task::{Error, run};

/// Runs a task of this program again, built with a feature.
#[cfg(not(all(feature = "book", feature = "dist")))]
pub(crate) fn with(feature: &str, arguments: &[&str]) -> Result<(), Error> {
    let base =
        ["run", "--quiet", "--profile", "light", "--package", "xtask", "--features", feature, "--"];
    run::cargo(&[&base, arguments].concat())
}
