//! The worker as its parent sees it.
//!
//! cuDNN runs in a process of its own, so that whatever becomes of it there, the answer is not lost.

use crate::properties;
use crate::question::Question;
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

/// An answer takes milliseconds; the first one loads half a gigabyte of libraries.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to start a worker: a program that calls [`serve`](crate::serve) with the library's path, its
/// last argument.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    /// The program, this one as a rule.
    pub program: PathBuf,
    /// What comes before the library's path.
    pub arguments: Vec<OsString>,
}

/// Why a worker gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    /// The process could not be started.
    #[error("cannot start the process that asks cuDNN")]
    Start(#[source] std::io::Error),
    /// The library cannot be used.
    #[error("{0}")]
    Refused(String),
    /// The process ended or fell silent.
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
        // It may be gone already, and there is nobody to tell.
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
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(WorkerError::Start)?;
        let input = child.stdin.take().expect("asked for a pipe");
        let output = child.stdout.take().expect("asked for a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            // The library may print what is not UTF-8; such a line is none of the worker's.
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

    /// Tells the device, once, before the first question.
    pub(crate) fn introduce(&mut self, device: &Device) -> Result<(), WorkerError> {
        self.send(&properties::json(device))
    }

    /// The workspaces of a convolution; none if cuDNN has no plan for it.
    pub(crate) fn ask(&mut self, question: &Question) -> Result<Option<Vec<Bytes>>, WorkerError> {
        self.send(&question.to_line())?;
        let (kind, text) = self.line(&[ANSWER, REFUSAL])?;
        if kind == REFUSAL {
            tracing::debug!(question = question.to_line(), text, "cuDNN refused");
            return Ok(None);
        }
        let sizes: Option<Vec<Bytes>> =
            text.split_ascii_whitespace().map(|n| n.parse().ok().map(Bytes)).collect();
        match sizes {
            Some(sizes) => Ok(Some(sizes).filter(|sizes| !sizes.is_empty())),
            None => Err(WorkerError::Lost(format!("said `{text}` where sizes were expected"))),
        }
    }

    fn send(&mut self, line: &str) -> Result<(), WorkerError> {
        let sent = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        sent.map_err(|_| self.ending())
    }

    /// The next line that begins in one of these ways, and what follows there.
    fn line(&mut self, beginnings: &[&'static str]) -> Result<(&'static str, String), WorkerError> {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    let found = beginnings.iter().find_map(|&b| Some((b, line.strip_prefix(b)?)));
                    if let Some((beginning, rest)) = found {
                        return Ok((beginning, rest.trim_end().to_owned()));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let text = format!("said nothing for {} seconds", PATIENCE.as_secs());
                    return Err(WorkerError::Lost(text));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ending()),
            }
        }
    }

    fn ending(&mut self) -> WorkerError {
        WorkerError::Lost(match self.child.wait() {
            Ok(status) => format!("ended: {status}"),
            Err(_) => "ended".to_owned(),
        })
    }
}
