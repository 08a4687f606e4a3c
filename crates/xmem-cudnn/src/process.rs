//! The worker process, from its parent's side.
//!
//! cuDNN runs in a process of its own, so that a fault in the library does not cost the answer. The
//! process has nothing of this one's environment, and what it can cost is bounded: the time that all
//! questions of a job take together, the length of a line, and the text that is not an answer.

use crate::properties;
use crate::query::Query;
use crate::worker::{ANSWER, PARENT_VARIABLE, REFUSAL, VERSION};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use xmem_devices::Device;
use xmem_types::{Bytes, printable};

/// The variable that chooses a source of plans, as `--cudnn` does for the `xmem` command.
pub(crate) const CHOICE_VARIABLE: &str = "XMEM_CUDNN";

/// The longest line of a worker. The longest answer of 30 000 had 12 sizes.
const LONGEST_LINE: usize = 4 << 10;

/// The most text between two answers that is no answer: what a library prints itself.
const MAX_NOISE: usize = 1 << 20;

/// The number of looks at a process that has closed its output, until it is ended.
const ENDING_LOOKS: u32 = 100;

/// The time between two of them.
const ENDING_INTERVAL: Duration = Duration::from_millis(10);

/// The number of lines that are read before they are wanted.
const LINES_AHEAD: usize = 16;

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

/// The time that is left for waiting for a worker.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    left: Duration,
}

impl Patience {
    /// The time for all questions of one job, with the start of the process. An answer takes
    /// milliseconds; the first one loads half a gigabyte of libraries.
    pub(crate) const JOB: Duration = Duration::from_secs(60);

    pub(crate) const fn new(limit: Duration) -> Self {
        Self { limit, left: limit }
    }
}

/// A running worker.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Result<String, &'static str>>,
    pub(crate) version: String,
    has_ended: bool,
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.has_ended {
            end_group(&self.child);
            // An error means that the process has ended already.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Ends the processes of a worker's group: its own, and those that the library has started. The worker
/// must not have been waited for, as another group may have its id then.
#[cfg(unix)]
fn end_group(worker: &Child) {
    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;
    if let Ok(group) = i32::try_from(worker.id()) {
        // An error means that there is no such process any more.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

/// True once a worker has ended, which stays to be waited for. Only on Linux does a cuDNN answer.
#[cfg(target_os = "linux")]
fn has_ended(worker: &Child) -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    use nix::unistd::Pid;
    let Ok(id) = i32::try_from(worker.id()) else { return true };
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(Pid::from_raw(id)), flags), Ok(WaitStatus::StillAlive))
}

#[cfg(not(unix))]
fn end_group(_: &Child) {}

#[cfg(not(target_os = "linux"))]
fn has_ended(_: &Child) -> bool {
    true
}

impl Worker {
    /// Starts a worker that has loaded `library`.
    pub(crate) fn start(
        command: &WorkerCommand,
        library: &Path,
        patience: &mut Patience,
    ) -> Result<Self, WorkerError> {
        let mut worker = Command::new(&command.program);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut worker, 0);
        let mut child = worker
            .args(&command.arguments)
            .arg(library)
            // No variable changes which code is loaded, or what it answers.
            .env_clear()
            // Should the program be no worker after all, it starts none of its own.
            .env(CHOICE_VARIABLE, "model")
            .env(PARENT_VARIABLE, std::process::id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(WorkerError::Start)?;
        let input = child.stdin.take().expect("a pipe was requested");
        let output = child.stdout.take().expect("a pipe was requested");
        let (sender, lines) = sync_channel(LINES_AHEAD);
        thread::spawn(move || forward_lines(output, &sender));
        let mut worker = Self { child, input, lines, version: String::new(), has_ended: false };
        match worker.line(&[VERSION, REFUSAL], patience)? {
            (VERSION, version) if is_release(&version) => worker.version = version,
            (VERSION, other) => {
                let text = format!("answered `{}` instead of a release", excerpt(&other));
                return Err(WorkerError::Lost(text));
            }
            (_, why) => return Err(WorkerError::Refused(excerpt(&why))),
        }
        Ok(worker)
    }

    /// Sends the device's properties: once, before the first query.
    pub(crate) fn send_device(&mut self, device: &Device) -> Result<(), WorkerError> {
        self.send(&properties::json(device))
    }

    /// The workspaces of a convolution; `None` if cuDNN has no plan for it.
    pub(crate) fn ask(
        &mut self,
        query: &Query,
        patience: &mut Patience,
    ) -> Result<Option<Vec<Bytes>>, WorkerError> {
        self.send(&query.to_line())?;
        let (kind, text) = self.line(&[ANSWER, REFUSAL], patience)?;
        if kind == REFUSAL {
            tracing::debug!(query = query.to_line(), text, "cuDNN refused");
            return Ok(None);
        }
        let sizes: Option<Vec<Bytes>> =
            text.split_ascii_whitespace().map(|n| n.parse().ok().map(Bytes)).collect();
        match sizes {
            Some(sizes) => Ok(Some(sizes).filter(|sizes| !sizes.is_empty())),
            None => {
                let text = format!("answered `{}` instead of sizes", excerpt(&text));
                Err(WorkerError::Lost(text))
            }
        }
    }

    fn send(&mut self, line: &str) -> Result<(), WorkerError> {
        let sent = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        sent.map_err(|_| self.ended())
    }

    /// The next line with one of these beginnings: the beginning, and the rest of the line.
    fn line(
        &mut self,
        beginnings: &[&'static str],
        patience: &mut Patience,
    ) -> Result<(&'static str, String), WorkerError> {
        let mut noise = 0;
        loop {
            let began = Instant::now();
            let line = self.lines.recv_timeout(patience.left);
            patience.left = patience.left.saturating_sub(began.elapsed());
            match line {
                Ok(Ok(line)) => {
                    let found = beginnings.iter().find_map(|&b| Some((b, line.strip_prefix(b)?)));
                    if let Some((beginning, rest)) = found {
                        return Ok((beginning, rest.trim_end().to_owned()));
                    }
                    noise += line.len() + 1;
                    if noise > MAX_NOISE {
                        let text = format!("printed more than {MAX_NOISE} bytes and no answer");
                        return Err(WorkerError::Lost(text));
                    }
                }
                Ok(Err(reason)) => return Err(WorkerError::Lost(reason.to_owned())),
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = patience.limit.as_secs();
                    let text = format!("did not give its answers within {seconds} seconds");
                    return Err(WorkerError::Lost(text));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    /// The end of a worker that has closed its output. If it runs on, it is ended.
    fn ended(&mut self) -> WorkerError {
        for _ in 0..ENDING_LOOKS {
            if has_ended(&self.child) {
                break;
            }
            thread::sleep(ENDING_INTERVAL);
        }
        end_group(&self.child);
        let _ = self.child.kill();
        let status = self.child.wait();
        self.has_ended = true;
        WorkerError::Lost(match status {
            Ok(status) => format!("ended: {status}"),
            Err(_) => "ended".to_owned(),
        })
    }
}

/// Sends the lines of a worker on, until it or the receiver ends.
fn forward_lines(output: impl Read, lines: &SyncSender<Result<String, &'static str>>) {
    let mut output = BufReader::new(output);
    while let Some(line) = next_line(&mut output).unwrap_or(None) {
        let too_long = line.is_err();
        if lines.send(line).is_err() || too_long {
            return;
        }
    }
}

/// The next line; `None` at the end. The library may print other bytes than UTF-8; such a line is not the
/// worker's.
fn next_line(output: &mut impl BufRead) -> io::Result<Option<Result<String, &'static str>>> {
    let mut line = Vec::new();
    output.take(LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() == LONGEST_LINE {
        return Ok(Some(Err("printed a line that is too long for an answer")));
    } else if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(Ok(String::from_utf8_lossy(&line).into_owned())))
}

/// True for a release such as `9.19.0`.
fn is_release(version: &str) -> bool {
    let is_number = |part: &str| part.parse::<u16>().is_ok() && !part.starts_with('+');
    version.split('.').count() == 3 && version.split('.').all(is_number)
}

/// A text of the worker as part of a message.
fn excerpt(text: &str) -> String {
    printable(text).chars().take(300).collect()
}
