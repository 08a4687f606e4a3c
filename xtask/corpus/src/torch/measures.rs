//! The measures of `xmem fit`, by the losses of small jobs on the CPU with and without them
//! (`crates/xmem-recorder/tests/measures`).

use super::process;
use super::script::{self, end_of};
use super::{Bench, Outcome};
use std::process::Command;
use xmem_task::{Error, repo};

/// The name by which `--only` selects the first case of each measure.
pub(super) const NAME: &str = "measures";
/// The name by which it selects all cases, which take minutes.
pub(super) const ALL: &str = "measures_in_all_cases";
const SCRIPT: &str = "crates/xmem-recorder/tests/measures/losses.py";

/// Runs the script, which succeeds if each measure changes what it says, and nothing else.
pub(super) fn check(bench: &Bench, name: &str) -> Result<Outcome, Error> {
    let folder = script::folder(bench, name)?;
    let mut command = Command::new(bench.venv.python());
    command.arg(repo::root().join(SCRIPT)).args((name == NAME).then_some("--quick"));
    script::set_up(&mut command, &folder);
    let done = process::run(command, &folder, NAME)?;
    let cases = done.stdout.lines().filter(|line| line.starts_with("ok")).count();
    let mut outcome = Outcome { remark: format!("{cases} cases"), ..Outcome::default() };
    if done.code != Some(0) {
        let failed = done.stdout.lines().filter(|line| line.starts_with("FAILED"));
        outcome.complaints.extend(failed.map(str::to_owned));
        outcome.complaints.push(format!("exit {:?}: {}", done.code, end_of(&done.stderr)));
    }
    Ok(outcome)
}
