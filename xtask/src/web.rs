//! `cargo xtask web`, `test-web`, `screenshots` and `time-web`: the HTML page's sources in `web/`.
//!
//! The built files are kept in the repository, so that building xmem needs no node.

mod random;

use crate::chromium;
use std::path::Path;
use std::process::{Command, Stdio};
use xmem_benches::synthetic::Training;
use xmem_task::program::{self, Profile};
use xmem_task::{Error, TaskError, repo};

/// The folder of the sources.
const FOLDER: &str = "web";

/// The files that are built.
const BUILT: [&str; 2] = ["report.js", "report.css"];

/// The blocks of a layer in an iteration of a synthetic trace.
const BLOCKS_PER_LAYER: usize = 8;

/// What to do with files that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Compare with them.
    Check,
    /// Replace them.
    Write,
}

/// A built file of the page is not that of its sources.
#[derive(Debug, thiserror::Error)]
#[error("web/dist/{file} is not what the sources in web/src give: run cargo xtask web")]
struct StaleError {
    file: &'static str,
}

impl TaskError for StaleError {}

/// Builds the page's program and style.
pub(crate) fn build(mode: Mode) -> Result<(), Error> {
    install()?;
    run("npx", &["--no-install", "tsc", "-p", "."], &[])?;
    if mode == Mode::Write {
        return run("node", &["build.mjs"], &[]);
    }
    let folder = repo::target()?.join("web");
    let to = folder.to_string_lossy();
    run("node", &["build.mjs", "--to", &to], &[])?;
    for file in BUILT {
        let path = folder.join(file);
        let built = std::fs::read(&path).map_err(Error::file(&path))?;
        let kept = repo::root().join(FOLDER).join("dist").join(file);
        if std::fs::read(&kept).map_err(Error::file(&kept))? != built {
            return Err(StaleError { file }.into());
        }
    }
    Ok(())
}

/// Runs the tests in a browser; they replace the kept pictures if `UPDATE_EXPECT` is set.
pub(crate) fn test(program: Option<&Path>) -> Result<(), Error> {
    install()?;
    browser()?;
    let xmem = program::find(program, Profile::Dev)?;
    run(
        "node",
        &["--test", "tests/report.test.mjs", "tests/verdict.test.mjs", "tests/fit.test.mjs"],
        &[("XMEM", &xmem)],
    )
}

/// Takes the pictures of the documentation.
pub(crate) fn screenshots(program: Option<&Path>) -> Result<(), Error> {
    install()?;
    browser()?;
    let xmem = program::find(program, Profile::Dev)?;
    run("node", &["tests/screenshots.mjs"], &[("XMEM", &xmem)])
}

/// The blocks of a synthetic trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Those of a training job, the same in each iteration: their columns compress well.
    Repeated,
    /// Random sizes, lifetimes and operators: their columns do not.
    Random,
}

/// Times a page with so many blocks.
pub(crate) fn time(program: Option<&Path>, blocks: usize, kind: Blocks) -> Result<(), Error> {
    install()?;
    browser()?;
    let xmem = program::find(program, Profile::Release)?;
    let trace = repo::target()?.join("web-blocks.json");
    let text = match kind {
        Blocks::Repeated => {
            let layers = 250;
            let iterations = blocks.div_ceil(layers * BLOCKS_PER_LAYER).max(1);
            Training { iterations, layers, ..Training::default() }.trace()
        }
        Blocks::Random => random::trace(blocks),
    };
    std::fs::write(&trace, text).map_err(Error::file(&trace))?;
    run("node", &["tests/time.mjs"], &[("XMEM", &xmem), ("TRACE", &trace)])
}

/// The packages of the lock file.
fn install() -> Result<(), Error> {
    let found = Command::new("npm").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err(Error::Skipped { reason: "node and npm are not installed" });
    }
    let folder = repo::root().join(FOLDER);
    let written = |path: &str| folder.join(path).metadata().and_then(|data| data.modified()).ok();
    let installed = written("node_modules/.package-lock.json");
    if installed.is_some() && installed >= written("package-lock.json") {
        return Ok(());
    }
    run("npm", &["ci", "--ignore-scripts"], &[])
}

fn browser() -> Result<(), Error> {
    match chromium::find() {
        Some(_) => Ok(()),
        None => Err(Error::Skipped { reason: chromium::MISSING }),
    }
}

/// Runs a program in the folder of the sources.
fn run(program: &str, arguments: &[&str], environment: &[(&str, &Path)]) -> Result<(), Error> {
    let spelled = format!("{program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(repo::root().join(FOLDER))
        .status()
        .map_err(Error::start(&spelled))?;
    if status.success() { Ok(()) } else { Err(Error::Failed { command: spelled }) }
}
