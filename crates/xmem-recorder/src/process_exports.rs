//! The exports of the command's processes, each read into a part file of its own.

use crate::export_stream::{self, ExportError, OTHER_CONTENT, Stream};
use crate::message::{ExportAnnounced, ProcessId};
use crate::output::Output;
use crate::part::Part;
use crate::tree::Tree;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use xmem_types::Bytes;

/// Exports that are read; further ones are ignored. Each has a thread and a file.
const MAX_EXPORTS: usize = 100;

/// Exports of one process that are read. The hook makes one; a process may replace itself (`os.execv`).
const MAX_OF_PROCESS: usize = 3;

/// All exports, in the order in which they began. The end of a reading is sent as an event `E`.
#[derive(Debug)]
pub(crate) struct Exports<E> {
    all: Vec<Export>,
    /// Where they are saved; none if nothing is to be.
    output: Option<Output>,
    /// The longest wait for content.
    patience: Duration,
    sender: Sender<E>,
}

/// The export of one process.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) pid: ProcessId,
    pub(crate) announced: ExportAnnounced,
    pub(crate) state: State,
    /// The report of the hook at its end.
    report: Option<Report>,
    stream: Stream,
    begun: Instant,
    ended: Option<Instant>,
}

/// The progress of reading an export.
#[derive(Debug)]
pub(crate) enum State {
    /// A thread reads it.
    Running,
    /// It was read into this file; `None` if nothing came.
    Written(Option<Part>),
    /// It could not be read.
    Failed(ExportError),
}

/// The report of the hook at the end of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    /// The trace went through the pipe.
    Streamed,
    /// The trace is a plain file.
    InFile,
    /// The trace could not be written.
    Failed,
}

/// The result of a thread that has read an export.
pub(crate) struct ReadExport {
    index: usize,
    result: Result<Option<Part>, ExportError>,
}

type Reading = fn(&Path, &Output, &Stream) -> Result<Option<Part>, ExportError>;

impl<E: From<ReadExport> + Send + 'static> Exports<E> {
    pub(crate) fn new(output: Option<Output>, patience: Duration, sender: Sender<E>) -> Self {
        Self { all: Vec::new(), output, patience, sender }
    }

    /// A process is about to export: PyTorch waits for a reader. Returns false if there are too many exports, or nothing
    /// is to be saved.
    pub(crate) fn begin(&mut self, pid: ProcessId, announced: ExportAnnounced) -> bool {
        let of_process = self.all.iter().filter(|export| export.pid == pid).count();
        if self.output.is_none() || self.all.len() >= MAX_EXPORTS || of_process >= MAX_OF_PROCESS {
            return false;
        }
        self.all.push(Export {
            pid,
            announced,
            state: State::Running,
            report: None,
            stream: Stream::new(self.patience),
            begun: Instant::now(),
            ended: None,
        });
        self.start_reading(self.all.len() - 1, export_stream::from_pipe);
        true
    }

    fn start_reading(&self, index: usize, reading: Reading) {
        let Some(output) = self.output.clone() else { return };
        let export = &self.all[index];
        let (path, stream) = (export.announced.path.clone(), export.stream.clone());
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let result = reading(&path, &output, &stream);
            // An error means that the run is over.
            let _ = sender.send(ReadExport { index, result }.into());
        });
    }

    /// A reader has reached the end.
    pub(crate) fn read(&mut self, ReadExport { index, result }: ReadExport) {
        let export = &mut self.all[index];
        export.ended = Some(Instant::now());
        export.state = match result {
            Ok(part) => State::Written(part),
            Err(error) => State::Failed(error),
        };
        self.fall_back(index);
    }

    /// The hook reports that PyTorch has written the trace.
    pub(crate) fn exported(&mut self, pid: ProcessId, streamed: bool) {
        self.report(pid, if streamed { Report::Streamed } else { Report::InFile });
    }

    /// The hook reports that the export failed.
    pub(crate) fn failed(&mut self, pid: ProcessId) {
        self.report(pid, Report::Failed);
    }

    fn report(&mut self, pid: ProcessId, report: Report) {
        let open = self.all.iter().rposition(|e| e.pid == pid && e.report.is_none());
        if let Some(index) = open {
            self.all[index].report = Some(report);
            self.fall_back(index);
        }
    }

    /// Reads the plain file if nothing came through the pipe.
    fn fall_back(&mut self, index: usize) {
        let export = &mut self.all[index];
        let is_empty = matches!(&export.state, State::Written(None));
        if export.report == Some(Report::InFile) && is_empty {
            export.state = State::Running;
            export.report = Some(Report::Streamed);
            self.start_reading(index, export_stream::from_file);
        }
    }

    /// Ends readers whose writer has reported the end, or has ended: other processes may hold the pipe open.
    pub(crate) fn finish_abandoned(&self, tree: &Tree) {
        for export in self.running() {
            if export.report.is_some() || !tree.has(export.pid) {
                export.stream.finish();
            }
        }
    }

    fn running(&self) -> impl Iterator<Item = &Export> {
        self.all.iter().filter(|e| matches!(e.state, State::Running))
    }

    /// True while an export is being read.
    pub(crate) fn are_running(&self) -> bool {
        self.running().next().is_some()
    }

    /// True if a process has begun an export.
    pub(crate) fn has_begun(&self, pid: ProcessId) -> bool {
        self.all.iter().any(|e| e.pid == pid)
    }

    /// The end of the last export that began at `begin` or later.
    pub(crate) fn last_end_since(&self, begin: Instant) -> Option<Instant> {
        self.all.iter().filter(|e| e.begun >= begin).filter_map(|e| e.ended).max()
    }

    /// The time at which the last complete recording was saved.
    pub(crate) fn complete_at(&self) -> Option<Instant> {
        let complete = |e: &&Export| e.announced.reason.is_complete();
        self.all.iter().filter(complete).filter_map(|e| e.ended).max()
    }

    /// True if a process has reported the end of an export.
    pub(crate) fn has_report_of(&self, pid: ProcessId) -> bool {
        self.all.iter().any(|e| e.pid == pid && e.report.is_some())
    }

    /// The size so far of the export under way.
    pub(crate) fn written(&self) -> Option<Bytes> {
        self.running().map(|e| e.stream.so_far()).max()
    }

    /// Removes and returns all exports.
    pub(crate) fn take(&mut self) -> Vec<Export> {
        std::mem::take(&mut self.all)
    }
}

impl Export {
    /// True if the process has reported that the whole trace was written.
    fn is_reported(&self) -> bool {
        matches!(self.report, Some(Report::Streamed | Report::InFile))
    }

    /// True if the trace was read to its end.
    pub(crate) fn is_whole(&self) -> bool {
        self.report == Some(Report::Streamed)
            && matches!(&self.state, State::Written(Some(part)) if part.has_end)
    }

    /// What was exported instead of a trace, if it was something else. A process that ended during the
    /// export has not exported anything.
    pub(crate) fn other_content(&self) -> Option<&'static str> {
        match &self.state {
            State::Failed(ExportError::NotATrace(found)) => Some(found),
            State::Failed(ExportError::NoEvents) if self.is_reported() => Some(OTHER_CONTENT),
            State::Written(None) if self.is_reported() => Some("nothing"),
            _ => None,
        }
    }
}
