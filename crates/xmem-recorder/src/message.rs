//! Messages of the hook: one JSON object per line. Unknown events and keys, of a newer hook, are ignored.

use super::exported_graph::GraphFacts;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;

/// A process of the command, by its id.
pub(crate) type ProcessId = u32;

/// A line of the control pipe.
#[derive(Debug, Deserialize)]
pub(crate) struct Line {
    /// The process that wrote it.
    pub(crate) pid: ProcessId,
    #[serde(flatten)]
    pub(crate) message: Message,
}

/// An event in a process.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Message {
    /// The hook was loaded into a Python interpreter.
    Python { version: String },
    /// PyTorch was found in a folder and is about to be imported: the engine must be chosen.
    Engine(FoundTorch),
    /// PyTorch was imported and redirected.
    Torch {
        version: String,
        /// The engine, if it is not the CPU.
        #[serde(default)]
        engine: Option<String>,
    },
    /// This process cannot be recorded.
    Unsupported { text: String },
    /// This process cannot run on the virtual GPU.
    NoVirtualGpu {
        text: String,
        /// Whether the reason is that PyTorch has no kernels for the device.
        #[serde(default)]
        no_kernels: bool,
    },
    /// The process has another user than at its start, who cannot reach the folder.
    OtherUser { from: u32, to: u32, place: String },
    /// A file or folder hides PyTorch or a module that it imports.
    Shadowed { module: String, path: PathBuf },
    /// The import of PyTorch failed.
    ImportFailed { text: String },
    /// The profiler runs.
    Recording,
    /// A model is called for the first time: its class, and its parameters with their bytes.
    Model { name: String, parameters: u64, bytes: u64 },
    /// An iteration has ended.
    Iteration { number: u32, seconds: f64, of: String },
    /// The script goes on after the recorded iterations.
    Rest,
    /// A measure was applied to so many places, or to none for a reason.
    Measure { name: String, places: u64, text: String },
    /// A note for the user.
    Note { text: String },
    /// PyTorch is about to write the trace to `<path>.tmp`.
    Export(ExportAnnounced),
    /// PyTorch has written the trace: to the named pipe, or to the plain file `path`.
    Exported { streamed: bool },
    /// The recording could not be saved.
    Failed { text: String },
    /// The archive of a graph was written.
    Graph(GraphFacts),
    /// There is no graph, for a reason.
    NoGraph { text: String },
    /// An exception ended a process before its first iteration was complete.
    Raised { text: String },
    /// A script ended, before anything was recorded, as weights or a configuration were missing: what helps.
    Missing { text: String },
    /// An event of a newer hook.
    #[serde(other)]
    Other,
}

/// PyTorch as a process found it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct FoundTorch {
    /// The folder of the package.
    pub(crate) path: PathBuf,
    /// Folders with packages of CUDA's libraries.
    #[serde(default)]
    pub(crate) packages: Vec<PathBuf>,
    /// Folders with libraries.
    #[serde(default)]
    pub(crate) libraries: Vec<PathBuf>,
}

/// The recording that a process is about to export.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct ExportAnnounced {
    pub(crate) path: PathBuf,
    #[serde(default)]
    pub(crate) iterations: u32,
    pub(crate) reason: Reason,
    /// An exit code or a text.
    #[serde(default)]
    pub(crate) detail: Value,
    /// Bytes that could not be allocated.
    #[serde(default)]
    pub(crate) needed: Option<u64>,
}

impl ExportAnnounced {
    /// The detail as text.
    pub(crate) fn detail_text(&self) -> String {
        match &self.detail {
            Value::Null => "an unknown error".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// The reason why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    Steps,
    Forwards,
    Backwards,
    End,
    Exit,
    Exception,
    Signal,
    Timeout,
    Memory,
    #[serde(other)]
    Other,
}

impl Reason {
    /// True if all requested iterations were recorded.
    pub(crate) fn is_complete(self) -> bool {
        matches!(self, Self::Steps | Self::Forwards | Self::Backwards)
    }
}

/// The reason for the hook to end a recording, written before the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    Timeout,
    Memory,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "timeout",
            Self::Memory => "memory",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Line, serde_json::Error> {
        serde_json::from_str(line)
    }

    #[test]
    fn every_event_is_read() {
        let export = ExportAnnounced {
            path: "/s/1.json".into(),
            iterations: 3,
            reason: Reason::Exit,
            detail: 1.into(),
            needed: None,
        };
        let rows = [
            (
                r#"{"event":"python","pid":1,"parent":0,"version":"3.11.7"}"#,
                Message::Python { version: "3.11.7".into() },
            ),
            (
                r#"{"event":"torch","pid":1,"version":"2.11.0+cu130"}"#,
                Message::Torch { version: "2.11.0+cu130".into(), engine: None },
            ),
            (
                r#"{"event":"torch","pid":1,"version":"2.11.0","engine":"virtual-gpu"}"#,
                Message::Torch { version: "2.11.0".into(), engine: Some("virtual-gpu".into()) },
            ),
            (
                r#"{"event":"engine","pid":1,"path":"/venv/torch"}"#,
                Message::Engine(FoundTorch { path: "/venv/torch".into(), ..FoundTorch::default() }),
            ),
            (
                r#"{"event":"unsupported","pid":1,"text":"old"}"#,
                Message::Unsupported { text: "old".into() },
            ),
            (
                r#"{"event":"no_virtual_gpu","pid":1,"text":"no space"}"#,
                Message::NoVirtualGpu { text: "no space".into(), no_kernels: false },
            ),
            (
                r#"{"event":"other_user","pid":1,"from":0,"to":33,"place":"a.py:3"}"#,
                Message::OtherUser { from: 0, to: 33, place: "a.py:3".into() },
            ),
            (
                r#"{"event":"shadowed","pid":1,"module":"torch","path":"/home/torch.py"}"#,
                Message::Shadowed { module: "torch".into(), path: "/home/torch.py".into() },
            ),
            (
                r#"{"event":"import_failed","pid":1,"text":"ImportError: x"}"#,
                Message::ImportFailed { text: "ImportError: x".into() },
            ),
            (r#"{"event":"recording","pid":1}"#, Message::Recording),
            (
                r#"{"pid":1,"event":"iteration","number":1,"seconds":3.5,"of":"optimizer steps"}"#,
                Message::Iteration { number: 1, seconds: 3.5, of: "optimizer steps".into() },
            ),
            (r#"{"event":"rest","pid":1}"#, Message::Rest),
            (
                r#"{"event":"note","pid":1,"text":"eagerly"}"#,
                Message::Note { text: "eagerly".into() },
            ),
            (
                r#"{"event":"export","pid":1,"path":"/s/1.json","iterations":3,"reason":"exit","detail":1}"#,
                Message::Export(export),
            ),
            (
                r#"{"event":"exported","pid":1,"streamed":false}"#,
                Message::Exported { streamed: false },
            ),
            (
                r#"{"event":"failed","pid":1,"text":"full"}"#,
                Message::Failed { text: "full".into() },
            ),
            (
                r#"{"event":"graph","pid":1,"operators":9,"parameters":2,"inputs":["x"],"dynamic":["batch"]}"#,
                Message::Graph(GraphFacts {
                    operators: 9,
                    parameters: 2,
                    inputs: vec!["x".into()],
                    dynamic: vec!["batch".into()],
                    fixed: None,
                }),
            ),
            (
                r#"{"event":"no_graph","pid":1,"text":"no loss"}"#,
                Message::NoGraph { text: "no loss".into() },
            ),
            (
                r#"{"event":"raised","pid":1,"text":"ValueError: x"}"#,
                Message::Raised { text: "ValueError: x".into() },
            ),
            (r#"{"event":"brewing","pid":1,"tea":{"green":true}}"#, Message::Other),
        ];
        for (line, message) in rows {
            let read = read(line).unwrap_or_else(|e| panic!("{line}: {e}"));
            assert_eq!((read.pid, read.message), (1, message), "{line}");
        }
    }

    #[test]
    fn a_reason_of_a_newer_hook_is_not_complete() {
        let line = r#"{"event":"export","pid":1,"path":"p","iterations":1,"reason":"boredom"}"#;
        match read(line).map(|l| l.message) {
            Ok(Message::Export(export)) => {
                assert_eq!(export.reason, Reason::Other);
                assert!(!export.reason.is_complete());
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn other_lines_are_errors() {
        for line in ["", "hello", "{}", r#"{"event":"recording"}"#, r#"{"pid":1}"#] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
