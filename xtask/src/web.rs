//! `cargo xtask web`, `web-estimate`, `test-web`, `screenshots` and `time-web`: the sources of the HTML pages in `web/`.
//!
//! The built files of the report are kept in the repository, so that building xmem needs no node. The page of `xmem estimate`
//! is no part of the program: it is built when it is published or tested.

mod random;

use crate::chromium;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xmem_benches::synthetic::Training;
use xmem_task::program::{self, Profile};
use xmem_task::run::cargo;
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

/// The platform of the page's module.
const PLATFORM: &str = "wasm32-unknown-unknown";

/// How the page's module is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Module {
    /// Small, for browsers: takes two minutes.
    Small,
    /// In half a minute, for tests and pictures: it computes the same.
    Quick,
}

impl Module {
    const fn profile(self) -> &'static str {
        match self {
            Self::Small => "web",
            Self::Quick => "quick",
        }
    }
}

/// Where the page of `xmem estimate` is built.
pub(crate) fn estimate_page() -> Result<PathBuf, Error> {
    Ok(repo::target()?.join("web").join("estimate.html"))
}

/// Builds the page of `xmem estimate`: the WebAssembly module, and one HTML file with all of it.
pub(crate) fn build_estimate(module: Module) -> Result<(), Error> {
    install()?;
    run("npx", &["--no-install", "tsc", "-p", "."], &[])?;
    let profile = module.profile();
    // Of the crate's two types, the library for Rust would only cost time.
    cargo(&[
        "rustc",
        "--quiet",
        "--locked",
        "--package",
        "xmem-web",
        "--crate-type",
        "cdylib",
        "--target",
        PLATFORM,
        "--profile",
        profile,
    ])?;
    let module = repo::target()?.join(PLATFORM).join(profile).join("xmem_web.wasm");
    let page = estimate_page()?;
    let folder = page.parent().unwrap_or(&page);
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let (module, to) = (module.to_string_lossy(), page.to_string_lossy());
    run("node", &["build.mjs", "--estimate", &module, "--to", &to], &[])?;
    println!("{to}");
    Ok(())
}

/// Runs the tests in a browser; they replace the kept pictures if `UPDATE_EXPECT` is set.
pub(crate) fn test(program: Option<&Path>) -> Result<(), Error> {
    install()?;
    browser()?;
    let xmem = program::find(program, Profile::Dev)?;
    build_estimate(Module::Quick)?;
    let tests = ["report", "verdict", "fit", "batches", "estimate"];
    let files = tests.map(|name| format!("tests/{name}.test.mjs"));
    let arguments: Vec<&str> =
        ["--test"].into_iter().chain(files.iter().map(String::as_str)).collect();
    run("node", &arguments, &[("XMEM", &xmem), ("PAGE", &estimate_page()?)])
}

/// Takes the pictures of the documentation.
pub(crate) fn screenshots(program: Option<&Path>) -> Result<(), Error> {
    install()?;
    browser()?;
    let xmem = program::find(program, Profile::Dev)?;
    build_estimate(Module::Quick)?;
    run("node", &["tests/screenshots.mjs"], &[("XMEM", &xmem), ("PAGE", &estimate_page()?)])
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
