//! The worker process, from its parent's side.
//!
//! cuDNN runs in a process of its own, so that a fault in the library does not cost the answer.

use crate::properties;
use crate::query::Query;
use crate::worker::{ANSWER, REFUSAL, VERSION};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use xmem_profiles::Device;
use xmem_types::Bytes;

/// The longest wait for a line. An answer takes milliseconds; the first one loads half a gigabyte of
/// libraries.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The variable that chooses a source of plans, as `--cudnn` does for the `xmem` command.
pub(crate) const CHOICE_VARIABLE: &str = "XMEM_CUDNN";

/// The command of a worker: a program that calls [`serve`](crate::serve) with the library's path, which
/// is added as the last argument.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    /// The program: `xmem`, or this program if it has such a command.
    pub program: PathBuf,
    /// The arguments before the library's path.
    pub arguments: Vec<OsString>,
}

/// The reason why a worker gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    /// The process could not be started.
    #[error("cannot start the process that asks cuDNN")]
    Start(#[source] std::io::Error),
    /// The library cannot be used.
    #[error("{0}")]
    Refused(String),
    /// The process ended, timed out or broke the protocol.
    #[error("the process that asks cuDNN {0}")]
    Lost(String),
}

/// A running worker.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    pub(crate) version: String,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    /// Starts a worker that has loaded `library`.
    pub(crate) fn start(command: &WorkerCommand, library: &Path) -> Result<Self, WorkerError> {
        let mut child = Command::new(&command.program)
            .args(&command.arguments)
            .arg(library)
            // Should the program be no worker after all, it starts none of its own.
            .env(CHOICE_VARIABLE, "model")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(WorkerError::Start)?;
        let input = child.stdin.take().expect("a pipe was requested");
        let output = child.stdout.take().expect("a pipe was requested");
        let (sender, lines) = channel();
        thread::spawn(move || {
            // The library may print other bytes than UTF-8; such a line is not the worker's.
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        let mut worker = Self { child, input, lines, version: String::new() };
        match worker.line(&[VERSION, REFUSAL])? {
            (VERSION, version) => worker.version = version,
            (_, why) => return Err(WorkerError::Refused(why)),
        }
        Ok(worker)
    }

    /// Sends the device's properties: once, before the first query.
    pub(crate) fn send_device(&mut self, device: &Device) -> Result<(), WorkerError> {
        self.send(&properties::json(device))
    }

    /// The workspaces of a convolution; `None` if cuDNN has no plan for it.
    pub(crate) fn ask(&mut self, query: &Query) -> Result<Option<Vec<Bytes>>, WorkerError> {
        self.send(&query.to_line())?;
        let (kind, text) = self.line(&[ANSWER, REFUSAL])?;
        if kind == REFUSAL {
            tracing::debug!(query = query.to_line(), text, "cuDNN refused");
            return Ok(None);
        }
        let sizes: Option<Vec<Bytes>> =
            text.split_ascii_whitespace().map(|n| n.parse().ok().map(Bytes)).collect();
        match sizes {
            Some(sizes) => Ok(Some(sizes).filter(|sizes| !sizes.is_empty())),
            None => Err(WorkerError::Lost(format!("answered `{text}` instead of sizes"))),
        }
    }

    fn send(&mut self, line: &str) -> Result<(), WorkerError> {
        let sent = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        sent.map_err(|_| self.ended())
    }

    /// The next line with one of these beginnings: the beginning, and the rest of the line.
    fn line(&mut self, beginnings: &[&'static str]) -> Result<(&'static str, String), WorkerError> {
        loop {
            match self.lines.recv_timeout(ANSWER_TIMEOUT) {
                Ok(line) => {
                    let found = beginnings.iter().find_map(|&b| Some((b, line.strip_prefix(b)?)));
                    if let Some((beginning, rest)) = found {
                        return Ok((beginning, rest.trim_end().to_owned()));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let text =
                        format!("did not answer within {} seconds", ANSWER_TIMEOUT.as_secs());
                    return Err(WorkerError::Lost(text));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    fn ended(&mut self) -> WorkerError {
        WorkerError::Lost(match self.child.wait() {
            Ok(status) => format!("ended: {status}"),
            Err(_) => "ended".to_owned(),
        })
    }
}
