//! A temporary file beside a result.

use crate::leftovers::{self, Kind};
use crate::name::{Maker, RANDOM};
use std::fs::{File, Permissions};
use std::io;
use std::path::Path;
use tempfile::NamedTempFile;

/// A file beside a result, which is renamed to it when it is complete, and removed when it is dropped.
#[derive(Debug)]
pub struct TemporaryFile(NamedTempFile);

impl TemporaryFile {
    /// Makes a file in the folder of `result`, and removes those of processes that were killed. Without
    /// `permissions`, only the owner can open it. They are subject to the umask.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn beside(result: &Path, permissions: Option<Permissions>) -> io::Result<Self> {
        let folder = match result.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        leftovers::remove(folder, Kind::Files);
        let prefix = format!(".{}", Maker::current());
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).rand_bytes(RANDOM);
        if let Some(permissions) = permissions {
            builder.permissions(permissions);
        }
        builder.tempfile_in(folder).map(Self)
    }

    /// The open file.
    #[must_use]
    pub fn as_file(&self) -> &File {
        self.0.as_file()
    }

    /// Its path, until it is renamed.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Renames the file to `result`, which it replaces.
    ///
    /// # Errors
    /// If it cannot be renamed; it is then removed.
    pub fn persist(self, result: &Path) -> io::Result<File> {
        self.0.persist(result).map_err(|error| error.error)
    }
}

impl io::Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_replaces_the_result_or_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let result = folder.path().join("result.json");
        std::fs::write(&result, "old").expect("written");
        let text = || std::fs::read_to_string(&result).expect("there");
        let names = || std::fs::read_dir(folder.path()).expect("listed").count();
        let mut file = TemporaryFile::beside(&result, None).expect("made");
        file.write_all(b"new").expect("written");
        assert_eq!((text().as_str(), names()), ("old", 2));
        drop(file);
        assert_eq!((text().as_str(), names()), ("old", 1));
        let mut file = TemporaryFile::beside(&result, None).expect("made");
        file.write_all(b"new").expect("written");
        file.persist(&result).expect("renamed");
        assert_eq!((text().as_str(), names()), ("new", 1));
    }
}
