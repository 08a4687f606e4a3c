//! Where results go: standard output, or a file that appears whole or not at all.

use crate::complaint::Complaint;
use crate::exit::Exit;
use std::fs::Permissions;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// Why nothing more can be written.
pub(crate) enum Broken {
    /// The output fails.
    Sink(io::Error),
    /// There is nothing right to write.
    Content(Box<Complaint>),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Sink(error)
    }
}

impl From<Complaint> for Broken {
    fn from(complaint: Complaint) -> Self {
        Self::Content(Box::new(complaint))
    }
}

/// Writes `text` to `file`, or to standard output.
pub(crate) fn write(text: &[u8], file: Option<&Path>) -> Result<(), Complaint> {
    stream(file, |out| Ok(out.write_all(text)?))
}

/// Writes to `file`, or to standard output, piece by piece.
pub(crate) fn stream(
    file: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> Result<(), Broken>,
) -> Result<(), Complaint> {
    let result = match file {
        None => to_stdout(content),
        Some(path) => to_file(content, path),
    };
    match (result, file) {
        (Ok(()), _) => Ok(()),
        (Err(Broken::Content(complaint)), _) => Err(*complaint),
        (Err(Broken::Sink(source)), Some(path)) => {
            Err(Complaint::Write { path: path.into(), source })
        }
        // A reader that goes away early (`| head`) is no error.
        (Err(Broken::Sink(source)), None) if source.kind() == ErrorKind::BrokenPipe => Ok(()),
        (Err(Broken::Sink(source)), None) => Err(Complaint::Stdout { source }),
    }
}

fn to_stdout(content: impl FnOnce(&mut dyn Write) -> Result<(), Broken>) -> Result<(), Broken> {
    let mut out = BufWriter::new(io::stdout().lock());
    content(&mut out)?;
    Ok(out.flush()?)
}

/// Writes beside the file and renames, so that a failure leaves what was there. What is not a
/// plain file (`/dev/stdout`, a named pipe) is written in place.
fn to_file(
    content: impl FnOnce(&mut dyn Write) -> Result<(), Broken>,
    path: &Path,
) -> Result<(), Broken> {
    let in_place = std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
    if in_place {
        let mut out = BufWriter::new(std::fs::OpenOptions::new().write(true).open(path)?);
        content(&mut out)?;
        return Ok(out.flush()?);
    }
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".xmem-");
    if let Some(permissions) = permissions(&target) {
        builder.permissions(permissions);
    }
    let mut out = BufWriter::new(builder.tempfile_in(folder)?);
    content(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(file.persist(&target).map(drop).map_err(|e| e.error)?)
}

/// Those of the file that is replaced, or those that any new file gets.
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

/// Prints a completion script.
pub(crate) fn completions(
    shell: clap_complete::Shell,
    mut command: clap::Command,
) -> Result<Exit, Complaint> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "xmem", &mut script);
    write(&script, None).map(|()| Exit::Fits)
}

/// Prints the manual page of the command itself.
pub(crate) fn man(command: clap::Command) -> Result<Exit, Complaint> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|source| Complaint::Stdout { source })?;
    write(&page, None).map(|()| Exit::Fits)
}
