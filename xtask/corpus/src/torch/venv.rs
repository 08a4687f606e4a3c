//! Python environments with one release of torch each, made once and kept in the target folder.
//!
//! What is in them is pinned in a list: `crates/xmem-recorder/tests/torch/RELEASE.txt`,
//! `traces/packages.txt` or `xtask/corpus/data/wild/packages.txt`. They come from PyPI, and are the CUDA builds that
//! a user gets, of several GB each.

use super::TESTS;
use crate::error::CorpusError;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use xmem_task::{Error, TaskError, repo};

/// Installs packages many times faster than pip.
const UV: &str = "uv==0.13.9";
/// What the pinned packages are for.
const PYTHON: &str = "3.11";
/// In an environment, the list of packages that it was made of; written last.
const COMPLETE: &str = "complete.txt";

/// An environment with torch could not be made.
#[derive(Debug, thiserror::Error)]
#[error("`{command}` failed: the tests with torch need python3, PyPI and 12 GB of disk")]
struct VenvError {
    command: String,
}

impl TaskError for VenvError {}

/// An environment with torch.
#[derive(Clone, Debug)]
pub(crate) struct Venv {
    /// The release of torch.
    pub(crate) torch: String,
    folder: PathBuf,
}

impl Venv {
    /// The environment of this release, made if it is not there or not what is pinned.
    pub(super) fn get(torch: &str) -> Result<Self, Error> {
        Self::of_list(torch, &PathBuf::from(TESTS).join("torch").join(format!("{torch}.txt")))
    }

    /// The environment of this name with the packages of a list of the repository, which pins torch.
    pub(crate) fn of_list(name: &str, pins: &Path) -> Result<Self, Error> {
        let wanted = repo::text(pins)?;
        let base = repo::target()?.join("torch");
        let torch = wanted.lines().find_map(|line| line.strip_prefix("torch=="));
        let Some(torch) = torch.map(|version| version.trim().to_owned()) else {
            let what = "no torch==".to_owned();
            return Err(CorpusError::Unusable { path: pins.to_owned(), what }.into());
        };
        let venv = Self { torch, folder: base.join(name) };
        let stamp = venv.folder.join(COMPLETE);
        if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(venv);
        }
        let start = Instant::now();
        println!("making {}", venv.folder.display());
        let uv = uv(&base)?;
        let folder = text(&venv.folder);
        run(Command::new(&uv).args(["venv", "--quiet", "--clear", "--python", PYTHON, &folder]))?;
        run(Command::new(&uv)
            .args(["pip", "sync", "--quiet", "--python", &text(&venv.python())])
            .arg(repo::root().join(pins))
            // Packages are unpacked once, and a cache would hold all of it a second time. A recorded script leaves no
            // bytecode behind: without it, each one would compile torch again.
            .args(["--no-cache", "--compile-bytecode"]))?;
        std::fs::write(&stamp, wanted).map_err(Error::file(&stamp))?;
        println!("  {:.0} s", start.elapsed().as_secs_f64());
        Ok(venv)
    }

    /// Installs packages into a folder of their own, for this interpreter, without what they depend on.
    pub(crate) fn install_into(&self, folder: &Path, packages: &[String]) -> Result<(), Error> {
        let base = repo::target()?.join("torch");
        run(Command::new(uv(&base)?)
            .args(["pip", "install", "--quiet", "--no-deps", "--no-cache"])
            .args(["--python", &text(&self.python()), "--target"])
            .arg(folder)
            .args(packages))
    }

    /// The interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        self.bin().join("python")
    }

    /// Where the programs are that packages bring.
    pub(super) fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// The folder of the environment.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// The path of uv, in an environment of its own.
fn uv(base: &Path) -> Result<PathBuf, Error> {
    let folder = base.join("uv");
    let program = folder.join("bin").join("uv");
    if !program.is_file() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let pip = folder.join("bin").join("pip");
        run(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", UV]))?;
    }
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), Error> {
    let spelled = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(VenvError { command: spelled }.into()),
        Err(source) => Err(Error::Start { command: spelled, source }),
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
