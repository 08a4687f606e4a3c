//! The traces that processes export, each on its way to a part file of its own.

use super::News;
use crate::export::{self, Part, Written};
use crate::message::{ExportAnnounced, ProcessId};
use crate::output::Output;
use crate::tree::Tree;
use std::io;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Instant;
use xmem_types::Bytes;

/// All of them, in the order in which they began.
#[derive(Debug)]
pub(super) struct Exports {
    all: Vec<Export>,
    output: Output,
    sender: Sender<News>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) pid: ProcessId,
    pub(crate) announced: ExportAnnounced,
    pub(crate) state: State,
    /// What the hook said when it was done.
    told: Option<Told>,
    written: Written,
    begun: Instant,
    ended: Option<Instant>,
}

/// How far it is.
#[derive(Debug)]
pub(crate) enum State {
    Running,
    Written(Part),
    Broken(io::Error),
}

/// What the hook says of an export that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Streamed,
    /// The trace is a plain file.
    InFile,
    Failed,
}

/// A thread has read all there was.
pub(super) struct Ended {
    index: usize,
    result: io::Result<Part>,
}

type Reading = fn(&Path, &Output, &Written) -> io::Result<Part>;

impl Exports {
    pub(super) fn new(output: Output, sender: Sender<News>) -> Self {
        Self { all: Vec::new(), output, sender }
    }

    /// A process is about to export: PyTorch waits for a reader.
    pub(super) fn begin(&mut self, pid: ProcessId, announced: ExportAnnounced) {
        self.all.push(Export {
            pid,
            announced,
            state: State::Running,
            told: None,
            written: Written::default(),
            begun: Instant::now(),
            ended: None,
        });
        self.read(self.all.len() - 1, export::stream);
    }

    fn read(&self, index: usize, reading: Reading) {
        let export = &self.all[index];
        let (path, written) = (export.announced.path.clone(), export.written.clone());
        let (output, sender) = (self.output.clone(), self.sender.clone());
        std::thread::spawn(move || {
            let result = reading(&path, &output, &written);
            // Nobody listens any more when the whole run is over.
            let _ = sender.send(News::Streamed(Ended { index, result }));
        });
    }

    /// The reader came to an end.
    pub(super) fn ended(&mut self, Ended { index, result }: Ended) {
        let export = &mut self.all[index];
        export.ended = Some(Instant::now());
        export.state = match result {
            Ok(part) => State::Written(part),
            Err(error) => State::Broken(error),
        };
        self.fall_back(index);
    }

    /// The hook says that PyTorch is done.
    pub(super) fn exported(&mut self, pid: ProcessId, streamed: bool) {
        self.tell(pid, if streamed { Told::Streamed } else { Told::InFile });
    }

    /// The hook says that nothing came of it.
    pub(super) fn failed(&mut self, pid: ProcessId) {
        self.tell(pid, Told::Failed);
    }

    fn tell(&mut self, pid: ProcessId, told: Told) {
        let open = self.all.iter().rposition(|e| e.pid == pid && e.told.is_none());
        if let Some(index) = open {
            self.all[index].told = Some(told);
            self.fall_back(index);
        }
    }

    /// Reads the plain file, where the pipe has brought nothing.
    fn fall_back(&mut self, index: usize) {
        let export = &mut self.all[index];
        let empty = matches!(&export.state, State::Written(part) if part.text == Bytes::ZERO);
        if export.told == Some(Told::InFile) && empty {
            export.state = State::Running;
            export.told = Some(Told::Streamed);
            self.read(index, export::file);
        }
    }

    /// Lets go of readers whose writer will not come: it has ended, or is done.
    pub(super) fn release_those_of_the_dead(&self, tree: &Tree) {
        for export in self.running() {
            if export.told.is_some() || !tree.has(export.pid) {
                export::release(&export.announced.path);
            }
        }
    }

    fn running(&self) -> impl Iterator<Item = &Export> {
        self.all.iter().filter(|e| matches!(e.state, State::Running))
    }

    /// Whether one is under way.
    pub(super) fn are_running(&self) -> bool {
        self.running().next().is_some()
    }

    /// Whether a process has begun one.
    pub(super) fn are_begun(&self, pid: ProcessId) -> bool {
        self.all.iter().any(|e| e.pid == pid)
    }

    /// When the last of those was over that began at a time or later.
    pub(super) fn last_end_since(&self, begin: Instant) -> Option<Instant> {
        self.all.iter().filter(|e| e.begun >= begin).filter_map(|e| e.ended).max()
    }

    /// When the last complete recording was saved.
    pub(super) fn complete_at(&self) -> Option<Instant> {
        let complete = |e: &&Export| e.announced.reason.is_complete();
        self.all.iter().filter(complete).filter_map(|e| e.ended).max()
    }

    /// Whether a process has said how its export went.
    pub(super) fn are_told(&self, pid: ProcessId) -> bool {
        self.all.iter().any(|e| e.pid == pid && e.told.is_some())
    }

    /// How much has come of the one under way.
    pub(super) fn written(&self) -> Option<Bytes> {
        self.running().map(|e| e.written.so_far()).max()
    }

    /// All of them; none are left.
    pub(super) fn take(&mut self) -> Vec<Export> {
        std::mem::take(&mut self.all)
    }
}

impl Export {
    /// Whether the end of the trace is there.
    pub(crate) fn is_whole(&self) -> bool {
        self.told == Some(Told::Streamed)
    }
}
