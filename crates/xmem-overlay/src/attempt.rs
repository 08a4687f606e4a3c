//! Tries what works on this machine, by processes that prepare a command and run none.

use crate::coverage::Coverage;
#[cfg(target_os = "linux")]
use crate::overlay::{LAYERS, PLAN, real};
#[cfg(target_os = "linux")]
use crate::plan::{self, Preparation};
#[cfg(target_os = "linux")]
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use xmem_tempfiles::PrivateFolder;
#[cfg(target_os = "linux")]
use xmem_tempfiles::{create_private_folder, write_private};

type InNamespace = (PathBuf, PrivateFolder, Coverage);

/// A namespace with its helper, the folder of its layers and its coverage, or the reasons why there is none.
#[cfg(target_os = "linux")]
pub(crate) fn namespace(
    helper: &Path,
    job: &[PathBuf],
    coverage: impl Fn(&PrivateFolder) -> Coverage,
) -> Result<InNamespace, String> {
    let mut reasons = Vec::new();
    for may_have_users in [false, true] {
        // The folder for temporary files may be of a kind that overlayfs cannot write to; memory is not.
        for folder in [PrivateFolder::for_programs(), PrivateFolder::new()] {
            let Ok(folder) = folder else { continue };
            let mut of_job = coverage(&folder);
            if may_have_users {
                match of_job.of_one_user(&written(job), belongs_to_user) {
                    Ok(coverage) => of_job = coverage,
                    Err(path) => {
                        reasons.push(format!("`{}` belongs to others", path.display()));
                        continue;
                    }
                }
            }
            let preparation = Preparation::Namespace { may_have_users };
            match run(helper, &folder, preparation, &of_job) {
                Ok(()) => return Ok((helper.to_owned(), folder, of_job)),
                Err(reason) => reasons.push(reason),
            }
        }
    }
    reasons.dedup();
    Err(reasons.join("; "))
}

/// Fails: there are no mount namespaces on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn namespace(
    _helper: &Path,
    _job: &[PathBuf],
    _coverage: impl Fn(&PrivateFolder) -> Coverage,
) -> Result<InNamespace, String> {
    Err("mount namespaces need Linux".to_owned())
}

/// The helper, if it can have the kernel refuse what the preloaded library does not see.
#[cfg(target_os = "linux")]
pub(crate) fn guard(helper: &Path, folder: &PrivateFolder, coverage: &Coverage) -> Option<PathBuf> {
    match run(helper, folder, Preparation::Guard, coverage) {
        Ok(()) => Some(helper.to_owned()),
        Err(reason) => {
            tracing::debug!(target: "xmem::overlay", reason, "the kernel refuses no writes");
            None
        }
    }
}

/// None: there is no such thing on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn guard(_: &Path, _: &PrivateFolder, _: &Coverage) -> Option<PathBuf> {
    None
}

#[cfg(target_os = "linux")]
fn run(
    helper: &Path,
    folder: &PrivateFolder,
    preparation: Preparation,
    coverage: &Coverage,
) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let plan = folder.path().join(PLAN);
    let layers = folder.path().join(LAYERS);
    write_private(&plan, &plan::written(preparation, coverage)).map_err(text)?;
    create_private_folder(&layers).map_err(text)?;
    let mut command = std::process::Command::new(helper);
    command.arg(crate::ENTER).arg(&plan).stdin(std::process::Stdio::null());
    let output = command.output().map_err(text)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("it gave no reason");
    Err(xmem_types::printable(last).into_owned())
}

/// The paths of a job, and folders that its environment names (`HF_HOME`), which the user can write to.
#[cfg(target_os = "linux")]
fn written(job: &[PathBuf]) -> Vec<PathBuf> {
    let named = std::env::vars_os().map(|(_, value)| PathBuf::from(value));
    let named = named.filter(|path| path.is_absolute() && path.is_dir()).map(|path| real(&path));
    let mut paths: Vec<PathBuf> = job.iter().cloned().chain(named).collect();
    paths.retain(|path| {
        path.is_dir() && nix::unistd::access(path, nix::unistd::AccessFlags::W_OK).is_ok()
    });
    paths
}

#[cfg(target_os = "linux")]
fn belongs_to_user(path: &Path) -> bool {
    let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    path.symlink_metadata().is_ok_and(|found| found.uid() == user && found.gid() == group)
}
