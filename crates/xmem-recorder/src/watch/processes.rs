//! What is known of the Pythons that loaded the hook.

use crate::message::{Message, ProcessId};
use std::collections::BTreeMap;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Processes(BTreeMap<ProcessId, Process>);

/// One of them.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// Version of Python.
    pub(crate) python: Option<String>,
    /// Version of PyTorch, once that was imported.
    pub(crate) torch: Option<String>,
    /// Why nothing can be recorded in it.
    pub(crate) unsupported: Option<String>,
    /// Why its recording could not be saved.
    pub(crate) failed: Option<String>,
    /// Iterations so far.
    pub(crate) iterations: u32,
    recording: bool,
}

impl Processes {
    /// Remembers what the hook said in `pid`.
    pub(super) fn note(&mut self, pid: ProcessId, message: Message) {
        let process = self.0.entry(pid).or_default();
        match message {
            Message::Python { version } => process.python = Some(version),
            Message::Torch { version } => process.torch = Some(version),
            Message::Unsupported { text } => process.unsupported = Some(text),
            Message::Failed { text } => process.failed = Some(text),
            Message::Iteration { number, .. } => process.iterations = number,
            Message::Recording => process.recording = true,
            Message::Note { .. }
            | Message::Export(_)
            | Message::Exported { .. }
            | Message::Other => {}
        }
    }

    /// Those that recorded: only they know SIGUSR2.
    pub(super) fn recording(&self) -> impl Iterator<Item = ProcessId> {
        self.0.iter().filter(|(_, process)| process.recording).map(|(pid, _)| *pid)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One of them.
    pub(crate) fn get(&self, pid: ProcessId) -> Option<&Process> {
        self.0.get(&pid)
    }

    /// All, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Process> {
        self.0.values()
    }

    /// Whether one recorded.
    pub(crate) fn any_recorded(&self) -> bool {
        self.recording().next().is_some()
    }
}
