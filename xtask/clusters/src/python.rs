//! An environment of Python with packages from PyPI.

use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::{Error, run};

/// Makes an environment below a folder; gives the folder of its programs.
pub(crate) fn environment(folder: &Path, packages: &[&str]) -> Result<PathBuf, Error> {
    let environment = folder.join("python");
    let programs = environment.join("bin");
    run::succeed(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let mut install = Command::new(programs.join("python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    run::succeed(&mut install)?;
    Ok(programs)
}
