//! The archive of a graph, which the command writes.

use crate::error::RecordError;
use crate::output::Output;
use crate::request::{Purpose, Request};
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use xmem_overlay::Overlay;
use xmem_types::Bytes;

/// In the overlay's folder: the archive.
const NAME: &str = "graph.pt2";

/// The longest archive that is kept: it has no weights.
const MAX_SIZE: u64 = 1 << 30;

/// The file that the hook writes the archive to.
pub(crate) fn written_to(request: &Request, overlay: &Overlay) -> Option<PathBuf> {
    (request.purpose == Purpose::ExportGraph).then(|| overlay.folder().join(NAME))
}

/// Opens the archive, which the command may have replaced by anything.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() && metadata.len() <= MAX_SIZE {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Puts the archive where it was asked for; returns its size.
pub(crate) fn deliver(overlay: &Overlay, output: &Output) -> Result<Bytes, RecordError> {
    let archive =
        open(&overlay.folder().join(NAME)).map_err(|source| RecordError::Export { source })?;
    let mut part = output.new_part().map_err(|source| output.error(source))?;
    let size = io::copy(&mut archive.take(MAX_SIZE), &mut part)
        .and_then(|size| part.flush().map(|()| size))
        .map_err(|source| output.error(source))?;
    output.replace(part)?;
    Ok(Bytes(size))
}
