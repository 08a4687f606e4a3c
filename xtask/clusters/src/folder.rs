//! The folder in which a task runs daemons.

use std::path::{Path, PathBuf};
use xmem_task::Error;

/// A folder, removed at the end if it is temporary.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    temporary: bool,
}

impl Folder {
    /// Makes the folder `path`, or a temporary one for the task `name`.
    pub(crate) fn new(path: Option<PathBuf>, name: &str) -> Result<Self, Error> {
        let temporary = path.is_none();
        let path = path.unwrap_or_else(|| {
            // Short, because a path of a socket may have at most 108 bytes.
            Path::new("/tmp").join(format!("xmem-{name}-{}", std::process::id()))
        });
        let path = std::path::absolute(&path).map_err(Error::file(&path))?;
        std::fs::create_dir_all(&path).map_err(Error::file(&path))?;
        Ok(Self { path, temporary })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.temporary {
            // What cannot be removed is in /tmp.
            drop(std::fs::remove_dir_all(&self.path));
        }
    }
}
