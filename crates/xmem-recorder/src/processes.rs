//! The Python processes that loaded the hook.

use crate::exported_graph::GraphFacts;
use crate::measures::AppliedMeasure;
use crate::message::{Message, ProcessId};
use crate::request::Engine;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Processes that are kept; messages of further ones are ignored, as a script can invent them.
const MAX_PROCESSES: usize = 10_000;

/// Measures that are kept of a process.
const MAX_MEASURES: usize = 100;

/// All processes that loaded the hook, by id.
#[derive(Debug, Default)]
pub(crate) struct Processes(BTreeMap<ProcessId, Process>);

/// A process that loaded the hook.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// Version of Python.
    pub(crate) python: Option<String>,
    /// Version of PyTorch, once imported.
    pub(crate) torch: Option<String>,
    /// The engine that it runs on.
    pub(crate) engine: Option<Engine>,
    /// The reason why it cannot be recorded.
    pub(crate) unsupported: Option<String>,
    /// The reason why it cannot run on the virtual GPU, and whether that is that there are no kernels.
    pub(crate) no_virtual_gpu: Option<(String, bool)>,
    /// The change of its user: the user before, the one after, and the line.
    pub(crate) other_user: Option<(u32, u32, String)>,
    /// The reason why its recording could not be saved.
    pub(crate) failed: Option<String>,
    /// The graph that it has written.
    pub(crate) graph: Option<GraphFacts>,
    /// The reason why it has written none.
    pub(crate) no_graph: Option<String>,
    /// The exception that ended it before its first iteration was complete.
    pub(crate) raised: Option<String>,
    /// What helps against the weights that were missing, with which it ended.
    pub(crate) missing: Option<String>,
    /// The file or folder that is imported in the place of PyTorch.
    pub(crate) shadowed: Option<PathBuf>,
    /// The error of the import of PyTorch.
    pub(crate) import_failure: Option<String>,
    /// What became of measures, by their names.
    pub(crate) measures: BTreeMap<String, AppliedMeasure>,
    /// Iterations so far.
    pub(crate) iterations: u32,
    recording: bool,
}

impl Processes {
    /// Records a message of the hook in `pid`.
    pub(crate) fn note(&mut self, pid: ProcessId, message: Message) {
        if self.0.len() >= MAX_PROCESSES && !self.0.contains_key(&pid) {
            return;
        }
        let process = self.0.entry(pid).or_default();
        match message {
            Message::Python { version } => process.python = Some(version),
            Message::Torch { version, engine } => {
                process.torch = Some(version);
                process.engine = Some(Engine::of_process(engine.as_deref()));
            }
            Message::Unsupported { text } => process.unsupported = Some(text),
            Message::NoVirtualGpu { text, no_kernels } => {
                process.no_virtual_gpu = Some((text, no_kernels));
            }
            Message::OtherUser { from, to, place } => process.other_user = Some((from, to, place)),
            Message::Shadowed { module, path } if module == "torch" => {
                process.shadowed = Some(path);
            }
            Message::ImportFailed { text } => process.import_failure = Some(text),
            Message::Failed { text } => process.failed = Some(text),
            Message::Graph(facts) => process.graph = Some(facts),
            Message::NoGraph { text } => process.no_graph = Some(text),
            Message::Raised { text } => process.raised = Some(text),
            Message::Missing { text } => process.missing = Some(text),
            Message::Measure { name, places, text } if process.measures.len() < MAX_MEASURES => {
                let applied = AppliedMeasure { name: name.clone(), places, text };
                process.measures.insert(name, applied);
            }
            Message::Iteration { number, .. } => process.iterations = number,
            Message::Recording => process.recording = true,
            Message::Shadowed { .. }
            | Message::Engine(_)
            | Message::Model { .. }
            | Message::Measure { .. }
            | Message::Note { .. }
            | Message::Export(_)
            | Message::Exported { .. }
            | Message::Rest
            | Message::Other => {}
        }
    }

    /// The processes that recorded: only they handle SIGUSR2.
    pub(crate) fn recording(&self) -> impl Iterator<Item = ProcessId> {
        self.0.iter().filter(|(_, process)| process.recording).map(|(pid, _)| *pid)
    }

    /// True if no process loaded the hook.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The process with that id.
    pub(crate) fn get(&self, pid: ProcessId) -> Option<&Process> {
        self.0.get(&pid)
    }

    /// All processes, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Process> {
        self.0.values()
    }

    /// True if a process recorded.
    pub(crate) fn any_recorded(&self) -> bool {
        self.recording().next().is_some()
    }
}
