//! The areas of CUDA, checked on a machine with two virtual GPUs (`crates/xmem-virtual-gpu/tests/areas`).

use super::process;
use super::script::{self, end_of};
use super::{Bench, Outcome};
use crate::error::Error;
use crate::{repo, run};
use std::process::Command;

/// The name by which `--only` selects it.
pub(super) const NAME: &str = "cuda_areas";
const SCRIPT: &str = "crates/xmem-virtual-gpu/tests/areas/areas.py";
/// The script knows the properties of this device.
const DEVICES: &str = "h100-80g:2";

/// Runs the script, which succeeds if each area behaves as documented.
pub(super) fn check(bench: &Bench) -> Result<Outcome, Error> {
    run::cargo(&["build", "-p", "xmem-virtual-gpu", "--example", "run", "--quiet", "--locked"])?;
    let folder = script::folder(bench, NAME)?;
    let mut command = Command::new(repo::target()?.join("debug/examples/run"));
    command.arg(DEVICES).arg(bench.venv.python()).arg(repo::root().join(SCRIPT));
    script::set_up(&mut command, &folder);
    let done = process::run(command, &folder, "areas")?;
    let remark = done.stdout.lines().last().unwrap_or_default().to_owned();
    let mut outcome = Outcome { remark, ..Outcome::default() };
    if done.code != Some(0) {
        let failed = done.stdout.lines().filter(|line| line.starts_with("FAILED"));
        outcome.complaints.extend(failed.map(str::to_owned));
        outcome.complaints.push(format!("exit {:?}: {}", done.code, end_of(&done.stderr)));
    }
    Ok(outcome)
}
