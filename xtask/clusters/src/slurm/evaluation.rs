//! `xmem eval --on slurm --submit` on the cluster.

use super::cluster::{self, Cluster};
use super::programs::Program;
use crate::daemon::wait;
use crate::evaluation::{Evaluation, PARTS};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use xmem_task::Error;
use xmem_task::tally::text_of;

/// The longest time until all parts are done.
const LIMIT: Duration = Duration::from_secs(120);

/// Submits an evaluation as a job array, and gives what is not as it should be.
pub(super) fn check(folder: &Path, cluster: &Cluster) -> Result<Vec<String>, Error> {
    let home = folder.join("evaluation");
    let evaluation = Evaluation::new(&home, "store")?;
    let program = Program::Real.folder(folder);
    let xmem = || {
        let mut command = Command::new(program.join("xmem"));
        command
            .env_clear()
            .env("HOME", &home)
            .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", program.display()))
            .env("SLURM_CONF", cluster::configuration(folder, true))
            .env("XMEM_TEST_ASKED", folder.join("asked"))
            .current_dir(&home);
        command
    };
    let parts = PARTS.to_string();
    let submitted = xmem()
        .args(evaluation.arguments())
        .args(["--on", "slurm", "--shards", &parts, "--submit"])
        .output()
        .map_err(Error::start("xmem"))?;
    let text = text_of(&submitted);
    if !submitted.status.success() || !text.contains("Submitted batch job ") {
        return Ok(vec![format!("{}\n{text}", submitted.status)]);
    }
    let queue_is_empty = || {
        let queue = cluster.tool("squeue").arg("--noheader").output();
        queue.is_ok_and(|queue| queue.status.success() && queue.stdout.trim_ascii().is_empty())
    };
    wait("the parts of an evaluation", LIMIT, queue_is_empty)?;
    evaluation.complaints(&mut xmem())
}
