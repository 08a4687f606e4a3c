//! The xmem that a task drives, where the caller names none.

use crate::Error;
use crate::{repo, run};
use std::path::PathBuf;

/// The program in the profile of the tests: most of its time is spent in `xmem-trace` and in libraries, which are
/// optimized there as well, so that compiling for release is not worth its minutes.
pub fn dev() -> Result<PathBuf, Error> {
    run::cargo(&["build", "--quiet", "--locked", "--workspace", "--bins"])?;
    Ok(repo::target()?.join("debug").join("xmem"))
}

/// The program as it is shipped.
pub fn released() -> Result<PathBuf, Error> {
    run::cargo(&["build", "--release", "--quiet", "--package", "xmem-cli"])?;
    Ok(repo::target()?.join("release").join("xmem"))
}
