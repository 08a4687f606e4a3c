//! The xmem that a task drives: the one that `--program` names, or one that is built.

use crate::{Error, repo, run};
use std::path::{Path, PathBuf};

/// The profile in which the program is built where none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// That of the tests: most of the program's time is spent in `xmem-trace` and in libraries, which are optimized
    /// there as well, so that compiling for release is not worth its minutes.
    Dev,
    /// The program as it is shipped.
    Release,
}

/// Returns the absolute path of the program that is named, or builds it.
pub fn find(named: Option<&Path>, profile: Profile) -> Result<PathBuf, Error> {
    match (named, profile) {
        (Some(path), _) => std::path::absolute(path).map_err(Error::file(path)),
        (None, Profile::Dev) => {
            run::cargo(&["build", "--quiet", "--locked", "--workspace", "--bins"])?;
            Ok(repo::target()?.join("debug").join("xmem"))
        }
        (None, Profile::Release) => {
            run::cargo(&["build", "--release", "--quiet", "--package", "xmem-cli"])?;
            Ok(repo::target()?.join("release").join("xmem"))
        }
    }
}
