//! The output: a part file beside it until the recording is complete.

use crate::encoder::Encoder;
use crate::error::RecordError;
use crate::part::Part;
use crate::recorded::Destination;
use std::fs::Permissions;
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use xmem_tempfiles::TemporaryFile;

/// The writer of a part file.
pub(crate) type PartWriter = Encoder<BufWriter<TemporaryFile>>;

/// The requested file.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// The path as given.
    requested: PathBuf,
    /// The path with links resolved.
    target: PathBuf,
}

impl Output {
    /// Checks that the file can be written, before the command runs.
    pub(crate) fn check(path: &Path) -> Result<Self, RecordError> {
        if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            return Err(RecordError::NotAFile { path: path.into() });
        }
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let output = Self { requested: path.into(), target };
        match output.new_part() {
            Ok(_) => Ok(output),
            Err(source) => Err(output.error(source)),
        }
    }

    /// The error of a failed write.
    pub(crate) fn error(&self, source: io::Error) -> RecordError {
        RecordError::Output { path: self.requested.clone(), source }
    }

    /// A new part file, which is removed when it is dropped.
    pub(crate) fn part(&self) -> io::Result<PartWriter> {
        Encoder::by_name(&self.target, BufWriter::with_capacity(1 << 18, self.new_part()?))
    }

    /// A new file beside the requested one, which is removed when it is dropped.
    pub(crate) fn new_part(&self) -> io::Result<TemporaryFile> {
        TemporaryFile::beside(&self.target, Some(Permissions::from_mode(0o666)))
    }

    /// Moves a complete recording to the requested path.
    pub(crate) fn save(&self, part: Part) -> Result<Destination, RecordError> {
        self.replace(part.file)?;
        Ok(Destination::Output(self.requested.clone()))
    }

    /// Moves a file to the requested path, with the permissions of one that is there.
    pub(crate) fn replace(&self, file: TemporaryFile) -> Result<(), RecordError> {
        if let Ok(existing) = std::fs::symlink_metadata(&self.target)
            && existing.is_file()
        {
            // Without an effect on the recording, should it fail.
            let _ = file.as_file().set_permissions(existing.permissions());
        }
        self.persist(file, &self.target)
    }

    /// Moves an incomplete recording to the requested path if no file exists there, else beside it.
    pub(crate) fn save_beside(&self, part: Part) -> Result<Destination, RecordError> {
        if !self.target.exists() {
            return self.save(part);
        }
        let beside = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".part");
            PathBuf::from(name)
        };
        self.persist(part.file, &beside(&self.target))?;
        Ok(Destination::Beside { part: beside(&self.requested), existing: self.requested.clone() })
    }

    fn persist(&self, file: TemporaryFile, to: &Path) -> Result<(), RecordError> {
        file.persist(to).map(drop).map_err(|error| self.error(error))
    }
}
