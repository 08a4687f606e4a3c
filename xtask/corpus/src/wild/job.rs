//! A script in a folder of its own, with its data, ready to be started.

use super::DATA;
use super::catalogue::Run;
use super::fetch::{self, Place, Source};
use crate::torch::process::{self, Done};
use crate::torch::venv::Venv;
use std::path::{Path, PathBuf};
use std::process::Command;
use xmem_task::{Error, repo};

/// What every run needs.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) xmem: PathBuf,
    /// The program that runs a command on a virtual GPU.
    pub(super) virtual_gpu: PathBuf,
    pub(super) venv: Venv,
    /// Where sources, runs and traces are kept.
    pub(super) folder: PathBuf,
}

/// A run that can be started. Its folder is removed with it, unless it is left.
#[derive(Debug)]
pub(super) struct Job<'a> {
    run: &'a Run,
    root: PathBuf,
    /// With its path.
    pub(super) script: PathBuf,
    folder: PathBuf,
}

impl<'a> Job<'a> {
    /// Lays out the files of a run; `way` tells apart folders of the same run.
    pub(super) fn new(
        bench: &Bench,
        run: &'a Run,
        source: &Source,
        way: &str,
    ) -> Result<Result<Self, String>, Error> {
        let root = bench.folder.join("runs").join(format!("{}.{way}", run.name));
        if root.exists() {
            std::fs::remove_dir_all(&root).map_err(Error::file(&root))?;
        }
        std::fs::create_dir_all(&root).map_err(Error::file(&root))?;
        let (script, folder) = match &source.place {
            Place::Checkout(checkout) => {
                let prefix = format!("--prefix={}/", root.display());
                if let Err(why) = fetch::git(checkout, &["checkout-index", "--all", &prefix])? {
                    return Ok(Err(why));
                }
                let script = root.join(&run.script);
                let folder = script.parent().unwrap_or(&root).to_owned();
                (script, folder)
            }
            Place::Packages(packages) => (packages.join(&run.script), root.clone()),
        };
        let folder = run.folder.as_ref().map_or(folder, |below| root.join(below));
        let mut make = Command::new(bench.venv.python());
        make.arg(python_file("data.py")).arg(&root).arg(&run.data);
        let logs = logs(bench)?;
        let done = process::run(make, &logs, &format!("{}.data", run.name))?;
        if done.code != Some(0) {
            return Ok(Err(format!("data.py: {}", end_of(&done))));
        }
        Ok(Ok(Self { run, root, script, folder }))
    }

    /// Runs the command in the folder of the job; its output is kept with the logs as `NAME.WAY`.
    pub(super) fn start(
        &self,
        bench: &Bench,
        mut command: Command,
        way: &str,
    ) -> Result<Done, Error> {
        command.args(&self.run.arguments).envs(&self.run.environment).current_dir(&self.folder);
        command.env("OMP_NUM_THREADS", "2").env("HF_HUB_OFFLINE", "1");
        // Importing torch takes three times as long without what Python has compiled.
        command.env_remove("PYTHONDONTWRITEBYTECODE");
        process::run(command, &logs(bench)?, &format!("{}.{way}", self.run.name))
    }

    /// Removes the folder.
    pub(super) fn clear(&self) -> Result<(), Error> {
        std::fs::remove_dir_all(&self.root).map_err(Error::file(&self.root))
    }
}

/// A Python file of this task.
pub(super) fn python_file(name: &str) -> PathBuf {
    repo::root().join(DATA).join(name)
}

fn logs(bench: &Bench) -> Result<PathBuf, Error> {
    made(bench.folder.join("logs"))
}

/// The folder, made if it is not there.
pub(crate) fn made(folder: PathBuf) -> Result<PathBuf, Error> {
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    Ok(folder)
}

/// Exit status and the last lines of what a program wrote.
pub(super) fn end_of(done: &Done) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = done.stderr.lines().collect();
    let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
    let code = done.code.map_or("a signal".to_owned(), |code| code.to_string());
    format!("exit {code}\n{end}")
}

/// Whether there is a file.
pub(super) fn is_there(path: &Path) -> bool {
    path.is_file()
}
