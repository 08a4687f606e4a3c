//! A trace on its way from the hook's named pipe to a part file.
//!
//! The command can put anything in the place of the pipe, and hold it open for ever. Links are not followed,
//! only a pipe or a plain file of this user is read, and a wait for its content has an end.

use crate::base_names::BaseNames;
use crate::lines;
use crate::outline::{NotATrace, Outline};
use crate::output::{Output, PartWriter};
use crate::part::Part;
use crate::recorded::RecordedRest;
use crate::rest::{self, Rest};
use crate::session::pipe_of;
use crate::trace_name::TraceName;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use xmem_types::{Bytes, SealingWriter};

/// Bytes of one read: the capacity of a pipe.
const CHUNK: usize = 1 << 16;

/// Bytes that a pipe can hold at most (pipe(7), `/proc/sys/fs/pipe-max-size`): all that is read after the
/// writer is known to have finished.
const MAX_PIPE: usize = 1 << 20;

/// The wait for content before the next look at the other conditions.
const WAIT: Duration = Duration::from_millis(20);

/// The part of a wait that counts: the rest is time in which this process was stopped (Ctrl-Z).
const MAX_COUNTED_WAIT: Duration = Duration::from_secs(1);

/// The reason why an export could not be read.
#[derive(Debug)]
pub(crate) enum ExportError {
    /// The output cannot be written.
    Output(io::Error),
    /// The export cannot be read.
    Input(io::Error),
    /// It is not a trace, but this.
    NotATrace(&'static str),
    /// It ended before the list of events.
    NoEvents,
    /// Nothing has come for this time.
    Stalled(Duration),
}

/// An export under way, shared between threads.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    written: Arc<AtomicU64>,
    finished: Arc<AtomicBool>,
    /// The longest wait for content.
    patience: Duration,
}

impl Stream {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { written: Arc::default(), finished: Arc::default(), patience }
    }

    /// Bytes read so far, before compression.
    pub(crate) fn so_far(&self) -> Bytes {
        Bytes(self.written.load(Ordering::Relaxed))
    }

    /// Ends the reading once the pipe is empty: its writer has finished or ended. Other processes may keep
    /// the pipe open.
    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Relaxed);
    }

    fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }
}

/// Reads the trace `path` from its pipe to the end; `None` if nothing came.
pub(crate) fn from_pipe(
    path: &Path,
    output: &Output,
    stream: &Stream,
) -> Result<Option<Part>, ExportError> {
    match open(&pipe_of(path), |metadata| metadata.file_type().is_fifo()) {
        Ok(pipe) => read_pipe(pipe, Copy::new(path, output), stream),
        Err(ExportError::Input(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the plain file `path`, if PyTorch has written there and not into the pipe.
pub(crate) fn from_file(
    path: &Path,
    output: &Output,
    _stream: &Stream,
) -> Result<Option<Part>, ExportError> {
    read_file(open(path, Metadata::is_file)?, Copy::new(path, output))
}

/// Opens what a process has exported, without waiting for the other end of a pipe.
fn open(path: &Path, is_expected: fn(&Metadata) -> bool) -> Result<File, ExportError> {
    // Before it is opened, which may have an effect on a device.
    check(&std::fs::symlink_metadata(path).map_err(ExportError::Input)?, is_expected)?;
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    let file = opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ELOOP) => ExportError::NotATrace(LINK),
        _ => ExportError::Input(error),
    })?;
    // It may have been replaced since.
    check(&file.metadata().map_err(ExportError::Input)?, is_expected)?;
    Ok(file)
}

const LINK: &str = "a symbolic link";

/// What does not begin as a trace does.
pub(crate) const OTHER_CONTENT: &str = "other content";

fn check(metadata: &Metadata, is_expected: fn(&Metadata) -> bool) -> Result<(), ExportError> {
    let kind = metadata.file_type();
    let found = if kind.is_symlink() {
        LINK
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else if kind.is_socket() {
        "a socket"
    } else if metadata.uid() != nix::unistd::geteuid().as_raw() {
        "a file of another user"
    } else if is_expected(metadata) {
        return Ok(());
    } else if kind.is_fifo() {
        "a named pipe"
    } else {
        "a file that is not the pipe made for the trace"
    };
    Err(ExportError::NotATrace(found))
}

fn read_pipe(
    mut pipe: File,
    mut copy: Copy<'_>,
    stream: &Stream,
) -> Result<Option<Part>, ExportError> {
    let mut chunk = vec![0; CHUNK];
    let mut has_writer = false;
    let mut waited = Duration::ZERO;
    let mut rest = MAX_PIPE;
    while waited < stream.patience && rest > 0 {
        // Before the reading, which then finds all that the writer has left.
        let is_finished = stream.is_finished();
        let begin = Instant::now();
        match pipe.read(&mut chunk) {
            Ok(0) if has_writer || is_finished => return copy.finish(),
            Ok(0) => std::thread::sleep(WAIT / 10),
            Ok(length) => {
                copy.push(&chunk[..length])?;
                stream.written.fetch_add(length as u64, Ordering::Relaxed);
                (has_writer, waited) = (true, Duration::ZERO);
                if is_finished {
                    rest = rest.saturating_sub(length);
                }
                continue;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && is_finished => {
                return copy.finish();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                has_writer = true;
                wait_for_content(&pipe);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(ExportError::Input(error)),
        }
        waited += begin.elapsed().min(MAX_COUNTED_WAIT);
    }
    match copy.finish() {
        Ok(None) => Err(ExportError::Stalled(stream.patience)),
        other => other,
    }
}

fn read_file(mut file: File, mut copy: Copy<'_>) -> Result<Option<Part>, ExportError> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return copy.finish(),
            Ok(length) => copy.push(&chunk[..length])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(ExportError::Input(error)),
        }
    }
}

fn wait_for_content(pipe: &File) {
    let mut pipes = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    // After an error, the next reading fails.
    let _ = poll(&mut pipes, PollTimeout::try_from(WAIT).unwrap_or(PollTimeout::ZERO));
}

/// A copy of an export in a part file, made when the first bytes have come.
struct Copy<'a> {
    output: &'a Output,
    outline: Outline,
    name: TraceName,
    files: BaseNames,
    /// Metadata to add behind the brace with which the trace begins.
    added: Option<String>,
    rest: Option<Rest>,
    to: Option<SealingWriter<PartWriter>>,
    text: Bytes,
}

impl<'a> Copy<'a> {
    fn new(path: &Path, output: &'a Output) -> Self {
        let (outline, name) = (Outline::default(), TraceName::new(path));
        let beside = |extension| open(&path.with_extension(extension), Metadata::is_file).ok();
        let rest = beside("rest").and_then(rest::read);
        let added =
            [beside("lines").and_then(lines::metadata), rest.as_ref().and_then(Rest::metadata)];
        let added = added.into_iter().flatten().reduce(|all, key| all + &key);
        Self {
            output,
            outline,
            name,
            files: BaseNames::default(),
            added,
            rest,
            to: None,
            text: Bytes::ZERO,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.outline.push(bytes).map_err(|NotATrace| ExportError::NotATrace(OTHER_CONTENT))?;
        let to = match &mut self.to {
            Some(to) => to,
            None => {
                let part = self.output.part().map_err(ExportError::Output)?;
                self.to.insert(SealingWriter::new(part))
            }
        };
        let mut text = self.files.push(&self.name.push(bytes));
        if self.added.is_some()
            && let Some(begin) = text.iter().position(|&byte| byte == b'{')
        {
            text.splice(
                begin + 1..begin + 1,
                self.added.take().into_iter().flat_map(String::into_bytes),
            );
        }
        self.text += Bytes(text.len() as u64);
        to.write_all(&text).map_err(ExportError::Output)
    }

    fn finish(mut self) -> Result<Option<Part>, ExportError> {
        let Some(mut to) = self.to else { return Ok(None) };
        let mut rest = self.files.push(&self.name.finish());
        rest.extend(self.files.finish());
        to.write_all(&rest).map_err(ExportError::Output)?;
        let text = self.text + Bytes(rest.len() as u64);
        if !self.outline.has_events() {
            return Err(ExportError::NoEvents);
        }
        let has_end = self.outline.has_end();
        let to = to.finish(has_end).map_err(ExportError::Output)?;
        let file =
            to.finish().and_then(|to| to.into_inner().map_err(io::IntoInnerError::into_error));
        let file = file.map_err(ExportError::Output)?;
        let size = Bytes(file.as_file().metadata().map_err(ExportError::Output)?.len());
        let mut facts = self.outline.facts();
        let rest = self.rest.map(|rest| {
            let recorded = RecordedRest { steps: rest.steps(), end: rest.ended() };
            facts.assumed = rest.into_assumed();
            recorded
        });
        Ok(Some(Part { file, text, size, has_end, rest, facts }))
    }
}
