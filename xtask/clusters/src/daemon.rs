//! Daemons that a task starts, and that end with it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use xmem_task::{Error, TaskError};

/// The longest time until a daemon ends that was asked to.
const END_LIMIT: Duration = Duration::from_secs(10);
/// The time between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(50);
/// The lines of a log that are shown if something goes wrong.
const LOG_LINES: usize = 20;

/// A daemon did not do what was waited for.
#[derive(Debug, thiserror::Error)]
enum DaemonError {
    /// Something did not come about in time.
    #[error("waited {seconds} s for {what}")]
    Waited { what: String, seconds: u64 },
    /// A daemon ended early; the end of its log was printed.
    #[error(
        "waited for {what}, but the daemon ended: the end of {} is above, --folder keeps all of it",
        .log.display()
    )]
    Ended { what: String, log: PathBuf },
}

impl TaskError for DaemonError {}

/// A daemon, ended when this is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a program in `folder` that ends with this one, even if that is killed. [`log_of`] is its log.
    /// To be called by the main thread: the daemon ends with the thread.
    pub(crate) fn start(
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        environment: &[(&str, &Path)],
        folder: &Path,
    ) -> Result<Self, Error> {
        let program = Path::new(program.as_ref());
        let log = log_of(program, folder);
        let file =
            File::options().create(true).append(true).open(&log).map_err(Error::file(&log))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM"])
            .arg(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(Error::start(program.display().to_string()))?;
        Ok(Self { child, log })
    }

    /// Waits until `holds`. What the daemon wrote last is printed if that takes too long, or if it ends.
    pub(crate) fn wait(
        &mut self,
        what: &str,
        limit: Duration,
        holds: impl FnMut() -> bool,
    ) -> Result<(), Error> {
        let mut holds = holds;
        let child = &mut self.child;
        let mut ended = false;
        let waited = wait(what, limit, || {
            ended = !matches!(child.try_wait(), Ok(None));
            ended || holds()
        });
        if waited.is_ok() && !ended {
            return Ok(());
        }
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        println!("{}:\n{}", self.log.display(), last.join("\n"));
        waited?;
        Err(DaemonError::Ended { what: what.to_owned(), log: self.log.clone() }.into())
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Ok(id) = i32::try_from(self.child.id()) {
            // A process that has ended needs none.
            let _ = kill(Pid::from_raw(id), signal);
        }
    }

    /// Ends it as SIGKILL does: at once.
    pub(crate) fn kill(mut self) {
        self.kill_and_wait();
    }

    fn kill_and_wait(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Daemon {
    /// Asks it to end, and kills it if it does not.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        self.signal(Signal::SIGTERM);
        let ended =
            wait("the end of a daemon", END_LIMIT, || !matches!(self.child.try_wait(), Ok(None)));
        if ended.is_err() {
            self.kill_and_wait();
        }
    }
}

/// The file to which a daemon writes its standard error.
pub(crate) fn log_of(program: &Path, folder: &Path) -> PathBuf {
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    folder.join(format!("{name}.stderr"))
}

/// Waits until something holds.
pub(crate) fn wait(what: &str, limit: Duration, holds: impl FnMut() -> bool) -> Result<(), Error> {
    let mut holds = holds;
    let start = Instant::now();
    while start.elapsed() < limit {
        if holds() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(DaemonError::Waited { what: what.to_owned(), seconds: limit.as_secs() }.into())
}

/// Ports of 127.0.0.1 that nothing listens on.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    let bind = || TcpListener::bind("127.0.0.1:0").map_err(Error::file("127.0.0.1"));
    // All are bound before the first is given back, so that they differ.
    let listeners = (0..N).map(|_| bind()).collect::<Result<Vec<_>, _>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr().map_err(Error::file("127.0.0.1"))?.port();
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ() {
        let [first, second] = free_ports().expect("ports");
        assert_ne!(first, second);
    }

    #[test]
    fn what_was_waited_for_is_said() {
        let error = wait("the moon", Duration::from_millis(60), || false).expect_err("no moon");
        assert!(error.to_string().contains("the moon"), "{error}");
    }
}
