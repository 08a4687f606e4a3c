//! The exports of the command's processes, each read into a part file of its own.

use crate::export::{self, Written};
use crate::message::{ExportAnnounced, ProcessId};
use crate::output::Output;
use crate::part::Part;
use crate::tree::Tree;
use std::io;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Instant;
use xmem_types::Bytes;

/// All exports, in the order in which they began. The end of a reading is sent as an event `E`.
#[derive(Debug)]
pub(crate) struct Exports<E> {
    all: Vec<Export>,
    output: Output,
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
    written: Written,
    begun: Instant,
    ended: Option<Instant>,
}

/// The progress of reading an export.
#[derive(Debug)]
pub(crate) enum State {
    /// A thread reads it.
    Running,
    /// It was read into this file.
    Written(Part),
    /// It could not be read.
    Failed(io::Error),
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
    result: io::Result<Part>,
}

type Reading = fn(&Path, &Output, &Written) -> io::Result<Part>;

impl<E: From<ReadExport> + Send + 'static> Exports<E> {
    pub(crate) fn new(output: Output, sender: Sender<E>) -> Self {
        Self { all: Vec::new(), output, sender }
    }

    /// A process is about to export: PyTorch waits for a reader.
    pub(crate) fn begin(&mut self, pid: ProcessId, announced: ExportAnnounced) {
        self.all.push(Export {
            pid,
            announced,
            state: State::Running,
            report: None,
            written: Written::default(),
            begun: Instant::now(),
            ended: None,
        });
        self.start_reading(self.all.len() - 1, export::stream);
    }

    fn start_reading(&self, index: usize, reading: Reading) {
        let export = &self.all[index];
        let (path, written) = (export.announced.path.clone(), export.written.clone());
        let (output, sender) = (self.output.clone(), self.sender.clone());
        std::thread::spawn(move || {
            let result = reading(&path, &output, &written);
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
        let empty = matches!(&export.state, State::Written(part) if part.text == Bytes::ZERO);
        if export.report == Some(Report::InFile) && empty {
            export.state = State::Running;
            export.report = Some(Report::Streamed);
            self.start_reading(index, export::file);
        }
    }

    /// Ends readers whose writer will not come: its process has ended, or it has reported.
    pub(crate) fn release_abandoned(&self, tree: &Tree) {
        for export in self.running() {
            if export.report.is_some() || !tree.has(export.pid) {
                export::release(&export.announced.path);
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
        self.running().map(|e| e.written.so_far()).max()
    }

    /// Removes and returns all exports.
    pub(crate) fn take(&mut self) -> Vec<Export> {
        std::mem::take(&mut self.all)
    }
}

impl Export {
    /// True if the trace was read to its end.
    pub(crate) fn is_whole(&self) -> bool {
        self.report == Some(Report::Streamed)
    }
}
