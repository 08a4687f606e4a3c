//! The programs of Kubernetes, where envtest looks for them, too.

use std::path::{Path, PathBuf};
use xmem_task::{Error, TaskError};

/// The environment variable with the folder.
const VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The folder with the programs of Kubernetes lacks one.
#[derive(Debug, thiserror::Error)]
#[error(
    "KUBEBUILDER_ASSETS names {}, which has no {program}: it needs kube-apiserver, etcd and kubectl",
    .folder.display()
)]
struct MissingProgramError {
    folder: PathBuf,
    program: &'static str,
}

impl TaskError for MissingProgramError {}

/// The programs.
#[derive(Clone, Debug)]
pub(super) struct Assets {
    pub(super) server: PathBuf,
    pub(super) etcd: PathBuf,
    pub(super) kubectl: PathBuf,
}

impl Assets {
    /// # Errors
    /// [`Error::Skipped`] if the variable is not set.
    pub(super) fn find() -> Result<Self, Error> {
        let folder = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
        let Some(folder) = folder else {
            return Err(Error::Skipped {
                reason: "set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl",
            });
        };
        let folder = std::path::absolute(&folder).map_err(Error::file(&folder))?;
        Self::of(&folder)
    }

    fn of(folder: &Path) -> Result<Self, Error> {
        let find = |program: &'static str| {
            let path = folder.join(program);
            match path.is_file() {
                true => Ok(path),
                false => Err(MissingProgramError { folder: folder.to_owned(), program }),
            }
        };
        Ok(Self { server: find("kube-apiserver")?, etcd: find("etcd")?, kubectl: find("kubectl")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_programs_is_an_error_that_names_one() {
        let error = Assets::of(Path::new("/nonexistent")).expect_err("no programs");
        assert!(error.to_string().contains("no kube-apiserver"), "{error}");
    }
}
