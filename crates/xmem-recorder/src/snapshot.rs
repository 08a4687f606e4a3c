//! PyTorch's own memory snapshot, which the command writes.

use crate::error::RecordError;
use crate::request::Request;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use xmem_overlay::Overlay;
use xmem_tempfiles::TemporaryFile;

/// In the overlay's folder: a snapshot that is to lie among the files that the command does not write to.
const NAME: &str = "snapshot.pickle";

/// The file that the command writes the snapshot to.
pub(crate) fn written_to(request: &Request, overlay: &Overlay) -> Option<PathBuf> {
    request.snapshot.as_ref().map(|path| {
        // The script may change its folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        if overlay.covers(&path) { overlay.folder().join(NAME) } else { path }
    })
}

/// Puts the snapshot where it was asked for.
pub(crate) fn deliver(request: &Request, overlay: &Overlay) -> Result<(), RecordError> {
    let Some(path) = &request.snapshot else { return Ok(()) };
    let kept = overlay.folder().join(NAME);
    if !kept.exists() {
        return Ok(());
    }
    copy(&kept, path).map_err(|source| RecordError::Output { path: path.clone(), source })
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = TemporaryFile::beside(to, Some(Permissions::from_mode(0o666)))?;
    io::copy(&mut std::fs::File::open(from)?, &mut file)?;
    file.persist(to).map(drop)
}
