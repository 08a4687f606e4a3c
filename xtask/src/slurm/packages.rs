//! Slurm and Lua from the packages of Debian and Ubuntu.

use crate::error::Error;
use std::process::{Command, Stdio};

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
    let missing = || PROGRAMS.iter().filter(|(program, _)| !is_there(program));
    let has_lua = LUA.iter().all(|lua| is_there(lua));
    if (missing().next().is_some() || !has_lua) && is_there("apt-get") {
        let packages: Vec<&str> = missing().map(|(_, package)| *package).collect();
        apt(&["update", "-qq"]);
        if !packages.is_empty() {
            apt(&[&["install", "-qq", "--no-install-recommends", PLUGINS], &packages[..]].concat());
        }
        for lua in LUA.iter().filter(|lua| !is_there(lua)) {
            apt(&["install", "-qq", "--no-install-recommends", lua]);
        }
    }
    if missing().next().is_some() {
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

/// Runs apt-get; what it could not do shows in what is missing.
fn apt(arguments: &[&str]) {
    let command = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    drop(command);
}
