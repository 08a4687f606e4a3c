//! Where results go: standard output, or a file that appears whole or not at all.

use crate::complaint::Complaint;
use crate::exit::Exit;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Writes `text` to `file`, or to standard output.
pub(crate) fn write(text: &[u8], file: Option<&Path>) -> Result<(), Complaint> {
    match file {
        None => to_stdout(text),
        Some(path) => to_file(path, |file| file.write_all(text)),
    }
}

/// Gives `content` a file to write that takes the place of `path` when it is whole.
pub(crate) fn to_file(
    path: &Path,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), Complaint> {
    replace(path, content).map_err(|source| Complaint::Write { path: path.into(), source })
}

/// A reader that goes away early (`| head`) is no error.
fn to_stdout(text: &[u8]) -> Result<(), Complaint> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => Err(Complaint::Stdout { source }),
        _ => Ok(()),
    }
}

/// Writes beside the file and renames, so that a failure leaves what was there. What is not a
/// plain file (`/dev/stdout`, a named pipe) is written in place.
fn replace(path: &Path, content: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let in_place = std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
    if in_place {
        return content(&mut std::fs::OpenOptions::new().write(true).open(path)?);
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
    let mut file = builder.tempfile_in(folder)?;
    content(file.as_file_mut())?;
    file.persist(&target).map(drop).map_err(|e| e.error)
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
