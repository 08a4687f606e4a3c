//! The libraries that jobs of this user were recorded with on this machine.
//!
//! A recording names the cuDNN library of its environment, and may come from anyone. A library is loaded
//! because a recording names it only if a command that this user recorded had it: its code ran then. The list
//! is a file beside the cached answers, and like them neither read nor written if other users can change it.

use crate::trust::{self, Caller};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use xmem_tempfiles::TemporaryFile;

const FILE: &str = "recorded-libraries";

/// The libraries that are listed at most; the oldest goes first.
const MAX_LIBRARIES: usize = 100;

/// Returns whether a job was recorded with a library.
pub(crate) fn is_listed(folder: &Path, library: &Path) -> bool {
    read(&folder.join(FILE)).iter().any(|listed| listed == library)
}

/// Adds a library to the list.
pub(crate) fn list(folder: &Path, library: &Path) -> io::Result<()> {
    let file = folder.join(FILE);
    let Some(path) = library.to_str().filter(|path| !path.contains('\n')) else { return Ok(()) };
    if is_listed(folder, library) || trust::place(&file, Caller::current()).is_err() {
        return Ok(());
    }
    crate::cache::create_private(folder)?;
    let mut libraries = read(&file);
    libraries.push(PathBuf::from(path));
    let oldest = libraries.len().saturating_sub(MAX_LIBRARIES);
    let mut beside = TemporaryFile::beside(&file, None)?;
    for library in &libraries[oldest..] {
        writeln!(beside, "{}", library.display())?;
    }
    beside.persist(&file)?;
    Ok(())
}

fn read(file: &Path) -> Vec<PathBuf> {
    if trust::place(file, Caller::current()).is_err() {
        return Vec::new();
    }
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_listed_once_and_the_oldest_goes_first() {
        let folder = tempfile::tempdir().expect("folder");
        let cache = folder.path().join("cache");
        let library = |n: usize| PathBuf::from(format!("/venv/{n}/libcudnn.so.9"));
        assert!(!is_listed(&cache, &library(0)));
        for n in 0..=MAX_LIBRARIES {
            list(&cache, &library(n)).expect("written");
            list(&cache, &library(n)).expect("written");
            assert!(is_listed(&cache, &library(n)), "{n}");
        }
        assert!(!is_listed(&cache, &library(0)));
        assert_eq!(read(&cache.join(FILE)).len(), MAX_LIBRARIES);
    }
}
