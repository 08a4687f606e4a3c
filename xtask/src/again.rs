//! Tasks that need a feature of this program which is off by default: they start it again, built with the feature.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use xmem_task::{Error, repo, run};

/// The arguments of cargo before those of the task.
fn built_with(feature: &str) -> [&str; 6] {
    ["run", "--quiet", "--package", "xtask", "--features", feature]
}

/// Runs a task and comes back.
#[cfg_attr(
    all(feature = "book", feature = "dist"),
    expect(dead_code, reason = "all is built in that comes back")
)]
pub(crate) fn with(feature: &str, arguments: &[&str]) -> Result<(), Error> {
    run::cargo(&[&built_with(feature)[..], &["--"], arguments].concat())
}

/// Becomes the same task with the same arguments, in the same folder. Returns only if cargo cannot be started.
#[cfg_attr(
    all(feature = "attack", feature = "clusters", feature = "corpus"),
    expect(dead_code, reason = "all libraries are built in")
)]
pub(crate) fn same(feature: &str) -> Result<(), Error> {
    let manifest = repo::root().join("Cargo.toml");
    let mut command = Command::new(repo::cargo());
    command.args(built_with(feature)).arg("--manifest-path").arg(manifest);
    command.arg("--").args(std::env::args_os().skip(1));
    let spelled = format!("{command:?}");
    Err(Error::Start { command: spelled, source: command.exec() })
}
