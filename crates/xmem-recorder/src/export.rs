//! A trace on its way from the hook's named pipe to a part file.

use crate::head::Head;
use crate::output::Output;
use crate::part::Part;
use crate::session::pipe_of;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xmem_types::Bytes;

/// Bytes of one read: the capacity of a pipe.
const CHUNK: usize = 1 << 16;

/// The size of a trace so far, shared between threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written(Arc<AtomicU64>);

impl Written {
    /// Bytes before compression.
    pub(crate) fn so_far(&self) -> Bytes {
        Bytes(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, length: usize) {
        self.0.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Reads the trace `path` from its pipe to the end. Blocks until a writer opens the pipe.
pub(crate) fn stream(path: &Path, output: &Output, written: &Written) -> io::Result<Part> {
    copy(File::open(pipe_of(path))?, output, written)
}

/// Reads the plain file `path`, if PyTorch has written there and not into the pipe.
pub(crate) fn file(path: &Path, output: &Output, written: &Written) -> io::Result<Part> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "PyTorch wrote no trace"));
    }
    copy(File::open(path)?, output, written)
}

/// Ends a [`stream`] that waits for a writer which will not come.
pub(crate) fn release(path: &Path) {
    for pipe in [pipe_of(path), path.to_owned()] {
        // Opening both ends never blocks. Without the pipe, no reader waits.
        let _ = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(pipe);
    }
}

fn copy(mut from: File, output: &Output, written: &Written) -> io::Result<Part> {
    let mut to = output.part()?;
    let mut head = Head::default();
    let mut chunk = vec![0; CHUNK];
    let mut text = Bytes::ZERO;
    loop {
        let length = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        head.push(&chunk[..length]);
        to.write_all(&chunk[..length])?;
        text += Bytes(length as u64);
        written.add(length);
    }
    let file = to.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    let size = Bytes(file.as_file().metadata()?.len());
    Ok(Part { file, text, size, redirected: head.redirected() })
}
