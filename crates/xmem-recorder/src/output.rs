//! Where the trace goes: a part file beside the output, until it is known to be good.

use crate::encoder::Encoder;
use crate::error::RecordError;
use crate::export::Part;
use crate::recorded::Place;
use std::fs::Permissions;
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What is written to a part file.
pub(crate) type PartWriter = Encoder<BufWriter<NamedTempFile>>;

/// The file that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// In the user's words.
    asked: PathBuf,
    /// Without links.
    target: PathBuf,
}

impl Output {
    /// Checks that a file can be made there: before the command runs for an hour.
    pub(crate) fn check(path: &Path) -> Result<Self, RecordError> {
        if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            return Err(RecordError::NotAFile { path: path.into() });
        }
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let output = Self { asked: path.into(), target };
        match output.new_part() {
            Ok(_) => Ok(output),
            Err(source) => Err(output.broken(source)),
        }
    }

    /// A failure to write, as the user is told.
    pub(crate) fn broken(&self, source: io::Error) -> RecordError {
        RecordError::Output { path: self.asked.clone(), source }
    }

    /// A new part file; it goes when it is dropped.
    pub(crate) fn part(&self) -> io::Result<PartWriter> {
        Encoder::by_name(&self.target, BufWriter::with_capacity(1 << 18, self.new_part()?))
    }

    fn new_part(&self) -> io::Result<NamedTempFile> {
        let folder = match self.target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut prefix = self.target.file_name().unwrap_or_default().to_owned();
        prefix.push(".");
        tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".part")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
    }

    /// Puts a complete recording where it was asked for.
    pub(crate) fn keep(&self, part: Part) -> Result<Place, RecordError> {
        if let Ok(there) = std::fs::metadata(&self.target) {
            // That the permissions stay is a courtesy.
            let _ = part.file.as_file().set_permissions(there.permissions());
        }
        self.put(part, &self.target)?;
        Ok(Place::Output(self.asked.clone()))
    }

    /// Puts a recording that was cut short where it was asked for if there is nothing yet, else beside
    /// it.
    pub(crate) fn keep_beside(&self, part: Part) -> Result<Place, RecordError> {
        if !self.target.exists() {
            return self.keep(part);
        }
        let beside = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".part");
            PathBuf::from(name)
        };
        self.put(part, &beside(&self.target))?;
        Ok(Place::Beside { part: beside(&self.asked), kept: self.asked.clone() })
    }

    fn put(&self, part: Part, to: &Path) -> Result<(), RecordError> {
        part.file.persist(to).map(drop).map_err(|e| self.broken(e.error))
    }
}
