//! `cargo xtask test-slurm`: the gate of `contrib/slurm` on real daemons.
//!
//! A cluster of one node with fake GPUs runs from a temporary folder, and jobs are submitted to it as users
//! do. `contrib/slurm/tests/cases.toml` lists them, and says what must come out.

mod case;
mod check;
mod cluster;
mod evaluation;
mod launchers;
mod packages;
mod programs;

use crate::folder::Folder;
use crate::options::Options;
use case::Case;
use check::Bench;
use cluster::Cluster;
use std::process::Command;
use xmem_task::program::{self, Profile};
use xmem_task::tally::Tally;
use xmem_task::{Error, only, repo};

/// The scripts under test.
const SCRIPTS: &str = "contrib/slurm";
/// What the tests are made of.
const TESTS: &str = "contrib/slurm/tests";

/// The name of the case that runs an evaluation.
const EVALUATION: &str = "evaluation-as-a-job-array";

/// The name of the case with programs that submit jobs.
const LAUNCHERS: &str = "submitit-and-torchx";

/// Runs the tests of the Lua scripts, starts a cluster and submits the jobs of all cases.
pub fn run(options: &Options) -> Result<(), Error> {
    let mut tally = Tally::new("test-slurm");
    packages::install()?;
    let xmem = program::find(options.program.as_deref(), Profile::Dev)?;
    tally.add_failed(lua_tests()?);
    let cases = case::all()?;
    let cases: Vec<&Case> =
        cases.iter().filter(|case| only::selects(&options.only, &case.name)).collect();

    let folder = Folder::new(options.folder.clone(), "slurm")?;
    let bench = Bench::new(folder.path(), &xmem)?;
    let mut cluster = Cluster::start(folder.path())?;
    println!("the cluster is ready");
    for case in &cases {
        tally.check(&case.name, || bench.check(case, &mut cluster))?;
    }
    if only::selects(&options.only, EVALUATION) {
        tally.check(EVALUATION, || evaluation::check(folder.path(), &cluster))?;
    }
    if only::selects(&options.only, LAUNCHERS) {
        tally.check(LAUNCHERS, || launchers::check(folder.path()))?;
    }
    cluster.stop();
    tally.finish()
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
        let status = status.map_err(Error::start(lua))?;
        failed += usize::from(!status.success());
    }
    Ok(failed)
}
