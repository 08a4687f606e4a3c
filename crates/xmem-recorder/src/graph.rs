//! The graph of an iteration, which the hook writes as an archive of torch.export.

use crate::conclusion;
use crate::error::RecordError;
use crate::exported_graph::ExportedGraph;
use crate::output::Output;
use crate::progress::Progress;
use crate::request::{Purpose, Request};
use crate::watch;
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

/// Runs the command of a request until the hook has written the archive, and puts it where it was asked for.
pub(crate) fn export(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<ExportedGraph, RecordError> {
    let output = Output::check(&request.output)?;
    let (evidence, overlay) = watch::watched(request, None, observer)?;
    let kept = overlay.kept();
    if !kept.is_nothing() {
        observer(Progress::Kept(&kept));
    }
    let found =
        evidence.processes.iter().find_map(|process| Some((process, process.graph.clone()?)));
    let Some((process, facts)) = found else {
        let reason = evidence.processes.iter().find_map(|process| process.no_graph.clone());
        return Err(match reason {
            Some(text) => RecordError::NoGraph { text },
            None => conclusion::failure(&evidence),
        });
    };
    let archive =
        open(&overlay.folder().join(NAME)).map_err(|source| RecordError::Export { source })?;
    let size = deliver(archive, &output)?;
    Ok(ExportedGraph {
        path: request.output.clone(),
        size,
        took: evidence.took,
        torch: process.torch.clone(),
        python: process.python.clone(),
        facts,
    })
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

fn deliver(archive: File, output: &Output) -> Result<Bytes, RecordError> {
    let mut part = output.new_part().map_err(|source| output.error(source))?;
    let size = io::copy(&mut archive.take(MAX_SIZE), &mut part)
        .and_then(|size| part.flush().map(|()| size))
        .map_err(|source| output.error(source))?;
    output.replace(part)?;
    Ok(Bytes(size))
}
