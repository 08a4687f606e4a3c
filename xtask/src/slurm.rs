//! `cargo xtask test-slurm`: the gate of `contrib/slurm` on real daemons.
//!
//! A cluster of one node with fake GPUs runs from a temporary folder, and jobs are submitted to it as users
//! do. `contrib/slurm/tests/cases.toml` lists them, and says what must come out.

mod case;
mod check;
mod cluster;
mod packages;
mod programs;

use crate::error::Error;
use crate::{program, repo};
use case::Case;
use check::Bench;
use cluster::Cluster;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The scripts under test.
const SCRIPTS: &str = "contrib/slurm";
/// What the tests are made of.
const TESTS: &str = "contrib/slurm/tests";

/// What to do.
#[derive(Debug)]
pub(crate) struct Options {
    /// The program to drive; none builds it.
    pub(crate) program: Option<PathBuf>,
    /// Only cases that have one of these in their names; none for all.
    pub(crate) only: Vec<String>,
    /// A folder for the cluster, which stays; none for a temporary one.
    pub(crate) folder: Option<PathBuf>,
}

/// Runs the tests of the Lua scripts, starts a cluster and submits the jobs of all cases.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let start = Instant::now();
    packages::install()?;
    let xmem = match &options.program {
        Some(program) => std::path::absolute(program).map_err(Error::file(program))?,
        None => program::dev()?,
    };
    let mut failed = lua_tests()?;
    let cases = case::all()?;
    let wanted = |name: &str| {
        options.only.is_empty() || options.only.iter().any(|part| name.contains(part.as_str()))
    };
    let cases: Vec<&Case> = cases.iter().filter(|case| wanted(&case.name)).collect();

    let folder = Folder::new(options.folder.clone())?;
    let bench = Bench::new(&folder.path, &xmem)?;
    let mut cluster = Cluster::start(&folder.path)?;
    println!("cluster {:38} {:5.1} s", "started", start.elapsed().as_secs_f64());
    for case in &cases {
        let start = Instant::now();
        let complaints = bench.check(case, &mut cluster)?;
        let word = if complaints.is_empty() { "ok" } else { "FAILED" };
        println!("{word:6} {:72} {:5.1} s", case.name, start.elapsed().as_secs_f64());
        for complaint in &complaints {
            println!("  {}", complaint.trim_end().replace('\n', "\n  "));
        }
        failed += usize::from(!complaints.is_empty());
    }
    cluster.stop();
    println!("\n{} cases, {failed} failed, {:.0} s", cases.len(), start.elapsed().as_secs_f64());
    if failed == 0 { Ok(()) } else { Err(Error::Submissions { count: failed }) }
}

/// Runs what needs no Slurm with every Lua that is there; gives how many failed.
fn lua_tests() -> Result<usize, Error> {
    let script = repo::root().join(TESTS).join("gate_test.lua");
    let mut failed = 0;
    for lua in packages::LUA {
        if !packages::is_there(lua) {
            println!("{lua} is not installed");
            continue;
        }
        let status = Command::new(lua).arg(&script).status();
        let status = status.map_err(|source| Error::Start { command: lua.to_owned(), source })?;
        failed += usize::from(!status.success());
    }
    Ok(failed)
}

/// A folder, removed at the end if it is temporary.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    temporary: bool,
}

impl Folder {
    fn new(path: Option<PathBuf>) -> Result<Self, Error> {
        let temporary = path.is_none();
        let path = path.unwrap_or_else(|| {
            // Short, because a path of slurmd's sockets may have at most 108 bytes.
            Path::new("/tmp").join(format!("xmem-slurm-{}", std::process::id()))
        });
        let path = std::path::absolute(&path).map_err(Error::file(&path))?;
        std::fs::create_dir_all(&path).map_err(Error::file(&path))?;
        Ok(Self { path, temporary })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is in /tmp.
            drop(std::fs::remove_dir_all(&self.path));
        }
    }
}
