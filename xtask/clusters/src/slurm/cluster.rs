//! A cluster of one node in a folder: its configuration, its daemons, and their end.

use super::SCRIPTS;
use crate::daemon::{Daemon, free_ports};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use xmem_task::{Error, repo};

/// The longest time until the node takes jobs.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// The daemons, stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Cluster {
    folder: PathBuf,
    controller: Option<Daemon>,
    node: Option<Daemon>,
}

/// Returns the file with the configuration; `client` with the client's side of the gate, or without.
pub(super) fn configuration(folder: &Path, client: bool) -> PathBuf {
    folder.join(if client { "slurm" } else { "bypass" }).join("slurm.conf")
}

impl Cluster {
    /// Starts the daemons, and waits until the node takes jobs.
    pub(super) fn start(folder: &Path) -> Result<Self, Error> {
        configure(folder)?;
        let mut cluster = Self { folder: folder.to_owned(), controller: None, node: None };
        cluster.controller = Some(cluster.daemon("slurmctld", &["-D", "-c"])?);
        cluster.node = Some(cluster.daemon("slurmd", &["-D", "-N", "localhost"])?);
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    /// Ends the controller and starts it again with its jobs.
    pub(super) fn restart(&mut self) -> Result<(), Error> {
        drop(self.controller.take());
        self.controller = Some(self.daemon("slurmctld", &["-D"])?);
        self.wait_until_ready()
    }

    /// Cancels all jobs and ends the daemons.
    pub(super) fn stop(&mut self) {
        if self.controller.is_some() {
            // Steps that are left would outlive slurmd.
            drop(self.tool("scancel").args(["--user", "root"]).status());
        }
        drop(self.controller.take());
        drop(self.node.take());
    }

    /// A command of Slurm for this cluster.
    pub(super) fn tool(&self, program: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["60", program]).env("SLURM_CONF", configuration(&self.folder, true));
        command.stdin(Stdio::null());
        command
    }

    /// Starts a daemon by its name, because Debian's builds leave out the GPUs of a `slurmd-wlm`.
    fn daemon(&self, program: &str, arguments: &[&str]) -> Result<Daemon, Error> {
        let configuration = configuration(&self.folder, true);
        Daemon::start(program, arguments, &[("SLURM_CONF", &configuration)], &self.folder)
    }

    fn wait_until_ready(&mut self) -> Result<(), Error> {
        // Taken out, because it is waited for with commands of this cluster.
        let mut daemons = [self.controller.take(), self.node.take()];
        let ready = || {
            let states = self.tool("sinfo").args(["-h", "-p", "gpu", "-o", "%T"]).output();
            states.is_ok_and(|output| matches!(output.stdout.trim_ascii(), b"idle" | b"mixed"))
        };
        let waited = daemons
            .iter_mut()
            .flatten()
            .try_for_each(|daemon| daemon.wait("a node that takes jobs", READY_LIMIT, ready));
        [self.controller, self.node] = daemons;
        waited
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Writes the configuration and copies the scripts.
fn configure(folder: &Path) -> Result<(), Error> {
    for name in ["slurm", "bypass", "state", "spool"] {
        let path = folder.join(name);
        std::fs::create_dir_all(&path).map_err(Error::file(&path))?;
    }
    let [controller_port, node_port] = free_ports()?;
    let gpus: Vec<PathBuf> = (0..4).map(|number| folder.join(format!("gpu{number}"))).collect();
    for gpu in &gpus {
        write(gpu, "")?;
    }
    let folder_text = folder.display();
    // The node has more CPUs and memory than the machine may have, so that jobs do not wait for them.
    let common = format!(
        "ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder_text}/state
SlurmdSpoolDir={folder_text}/spool
SlurmctldPidFile={folder_text}/slurmctld.pid
SlurmdPidFile={folder_text}/slurmd.pid
SlurmctldLogFile={folder_text}/slurmctld.log
SlurmdLogFile={folder_text}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MaxJobCount=1000
GresTypes=gpu
JobSubmitPlugins=lua
NodeName=localhost NodeAddr=127.0.0.1 CPUs=8 RealMemory=16384 Gres=gpu:a100:2,gpu:v100:2 Feature=a100,v100,nvlink
PartitionName=gpu Nodes=localhost Default=YES
PartitionName=lenient Nodes=localhost
PartitionName=unchecked Nodes=localhost
PartitionName=strict Nodes=localhost
"
    );
    write(&configuration(folder, true), &format!("{common}CliFilterPlugins=lua\n"))?;
    write(&configuration(folder, false), &common)?;
    let gres = format!(
        "Name=gpu Type=a100 File={folder_text}/gpu[0-1]\nName=gpu Type=v100 File={folder_text}/gpu[2-3]\n"
    );
    for side in ["slurm", "bypass"] {
        write(&folder.join(side).join("gres.conf"), &gres)?;
    }
    for script in ["cli_filter.lua", "job_submit.lua"] {
        let text = repo::text(&Path::new(SCRIPTS).join(script))?;
        write(&folder.join("slurm").join(script), &text)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(Error::file(path))
}
