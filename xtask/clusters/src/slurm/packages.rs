//! Slurm and Lua from the packages of Debian and Ubuntu.

use std::process::{Command, Stdio};
use xmem_task::Error;

/// What must be there, with the package that has it.
const PROGRAMS: [(&str, &str); 3] =
    [("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("sbatch", "slurm-client")];
/// The package with the Lua plug-ins, where it is not part of another.
const PLUGINS: &str = "slurm-wlm-basic-plugins";
/// The interpreters; those that a distribution does not have are left out.
pub(super) const LUA: [&str; 4] = ["lua5.1", "lua5.2", "lua5.3", "lua5.4"];

/// Installs what is missing.
///
/// # Errors
/// [`Error::Skipped`] if that is not possible here.
pub(super) fn install() -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(Error::Skipped { reason: "the daemons of Slurm need root" });
    }
    let missing = |programs: &[(&'static str, &'static str)]| -> Vec<&'static str> {
        programs
            .iter()
            .filter(|(program, _)| !is_there(program))
            .map(|(_, package)| *package)
            .collect()
    };
    let lua = LUA.map(|lua| (lua, lua));
    let all = [missing(&PROGRAMS), missing(&lua)].concat();
    if !all.is_empty() && is_there("apt-get") {
        // With the lists of packages that are there: fetching them may take longer than all else.
        apt_install(&all);
        let programs = missing(&PROGRAMS);
        if !programs.is_empty() {
            apt(&["update", "-qq"]);
            apt_install(&programs);
        }
        // One by one, because a distribution may not have all.
        missing(&lua).into_iter().for_each(|lua| apt_install(&[lua]));
    }
    if !missing(&PROGRAMS).is_empty() {
        return Err(Error::Skipped {
            reason: "slurmctld, slurmd and slurm-client cannot be installed",
        });
    }
    Ok(())
}

/// Returns whether a program is in the path.
pub(super) fn is_there(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$0\"", program])
        .stdout(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// Installs packages, with the Lua plug-ins of Slurm.
fn apt_install(packages: &[&str]) {
    let options = ["install", "-qq", "--no-install-recommends", PLUGINS];
    apt(&[&options, packages].concat());
}

/// Runs apt-get; what it could not do shows in what is missing.
fn apt(arguments: &[&str]) {
    let command = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    drop(command);
}
