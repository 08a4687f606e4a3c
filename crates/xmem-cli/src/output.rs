//! The destination of results: standard output, or a file that is written atomically.

mod error;

pub(crate) use error::OutputFailure;

use crate::error::{CliError, Failure};
use crate::file_size_limit::explain;
use crate::style;
use crate::terminal::{self, Escaping};
use std::fs::Permissions;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use xmem_tempfiles::TemporaryFile;

/// An error that ends writing.
pub(crate) enum WriteError {
    /// The output fails.
    Output(io::Error),
    /// The content cannot be computed.
    Content(CliError),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl<F: Failure> From<F> for WriteError {
    fn from(failure: F) -> Self {
        CliError::from(failure).into()
    }
}

impl From<CliError> for WriteError {
    fn from(error: CliError) -> Self {
        Self::Content(error)
    }
}

/// Refuses a file whose folder does not exist, before work that takes long.
pub(crate) fn check_folder(file: &Path) -> Result<(), OutputFailure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let refused = match std::fs::metadata(folder.unwrap_or(Path::new("."))) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => ErrorKind::NotADirectory.into(),
        Err(source) => source,
    };
    Err(OutputFailure::File { path: file.into(), source: refused })
}

/// Writes `text` to `file`, or to standard output.
pub(crate) fn write(text: &[u8], file: Option<&Path>) -> Result<(), CliError> {
    stream(file, |out| Ok(out.write_all(text)?))
}

/// Writes text to `file`, or to standard output, in pieces.
pub(crate) fn stream(
    file: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>,
) -> Result<(), CliError> {
    let color = style::of_output(file).color;
    bytes(file, |out| {
        let mut out = Escaping::new(out, color);
        content(&mut out)?;
        Ok(out.flush()?)
    })
}

/// Writes to `file`, or to standard output, what is not text of this program.
pub(crate) fn bytes(
    file: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>,
) -> Result<(), CliError> {
    let result = match file {
        None => to_stdout(content),
        Some(path) => to_file(content, path),
    };
    match (result, file) {
        (Ok(()), _) => Ok(()),
        (Err(WriteError::Content(error)), _) => Err(error),
        (Err(WriteError::Output(source)), Some(path)) => {
            Err(OutputFailure::File { path: path.into(), source: explain(source) }.into())
        }
        // A reader that closes the pipe early (`| head`) is not an error.
        (Err(WriteError::Output(source)), None) if source.kind() == ErrorKind::BrokenPipe => Ok(()),
        (Err(WriteError::Output(source)), None) => {
            Err(OutputFailure::Stdout { source: explain(source) }.into())
        }
    }
}

fn to_stdout(
    content: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let mut out = BufWriter::new(terminal::raw_stdout());
    content(&mut out)?;
    Ok(out.flush()?)
}

/// Writes a temporary file in the same directory and renames it, so that a failure leaves an
/// existing file unchanged. Anything but a regular file (`/dev/stdout`, a named pipe) is written in
/// place.
fn to_file(
    content: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>,
    path: &Path,
) -> Result<(), WriteError> {
    let in_place = std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
    if in_place {
        let mut out = BufWriter::new(std::fs::OpenOptions::new().write(true).open(path)?);
        content(&mut out)?;
        return Ok(out.flush()?);
    }
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let file = TemporaryFile::beside(&target, permissions(&target))?;
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(file.persist(&target).map(drop)?)
}

/// The permissions of the replaced file, or those of a new file.
fn permissions(target: &Path) -> Option<Permissions> {
    std::fs::metadata(target).ok().map(|m| m.permissions()).or_else(of_a_new_file)
}

#[cfg(unix)]
fn of_a_new_file() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn of_a_new_file() -> Option<Permissions> {
    None
}
