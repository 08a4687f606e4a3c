//! One run of a program: how it ended, how long it took, and how much memory it held at most.
//!
//! A run goes through a second process of this program, `cargo xtask measure-run`, which starts nothing else:
//! the kernel keeps the peak of all children of a process, and a child begins with what its parent holds.

use nix::sys::resource::{Resource, UsageWho, getrusage, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use xmem_task::Error;

/// How long a run may take before it counts as hanging and is killed.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The address space that a run may have, so that one that reads without end does not take the machine with it.
const ADDRESS_SPACE: u64 = 4 << 30;

/// This program, even if its file was replaced by a build with other features since it started.
const THIS: &str = "/proc/self/exe";

/// How often to look whether a run has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The exit code, unless a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Killed because it took too long.
    pub(crate) hung: bool,
    pub(crate) millis: u64,
    /// The most memory that it held, in KiB.
    pub(crate) peak_kib: u64,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs programs and keeps their output in a folder of one thread.
#[derive(Debug)]
pub(crate) struct Runner {
    folder: PathBuf,
}

impl Runner {
    pub(crate) fn new(folder: PathBuf) -> Result<Self, Error> {
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        Ok(Self { folder })
    }

    /// Removes the folder.
    pub(crate) fn remove(&self) -> Result<(), Error> {
        std::fs::remove_dir_all(&self.folder).map_err(Error::file(&self.folder))
    }

    /// The place of a file for a run.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs the program, with this file as its standard input.
    pub(crate) fn run(
        &self,
        program: &Path,
        arguments: &[OsString],
        stdin: Option<&Path>,
    ) -> Result<Ended, Error> {
        let [usage, stdout, stderr] = ["usage", "stdout", "stderr"].map(|name| self.file(name));
        let create = |path: &PathBuf| File::create(path).map_err(Error::file(path));
        let mut command = Command::new(THIS);
        command.arg("measure-run").arg(&usage).arg("--").arg(program).args(arguments);
        command.stdin(match stdin {
            Some(path) => File::open(path).map_err(Error::file(path))?.into(),
            None => Stdio::null(),
        });
        command.stdout(create(&stdout)?).stderr(create(&stderr)?);
        let spelled = format!("{command:?}");
        let status = command.status().map_err(Error::start(&spelled))?;
        if !status.success() {
            return Err(Error::Failed { command: spelled });
        }
        let read = |path: &PathBuf| {
            let bytes = std::fs::read(path).map_err(Error::file(path))?;
            Ok::<_, Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let mut ended = parse(&read(&usage)?).ok_or(Error::Failed { command: spelled })?;
        ended.stdout = read(&stdout)?;
        ended.stderr = read(&stderr)?;
        Ok(ended)
    }
}

/// `cargo xtask measure-run USAGE -- PROGRAM ARGUMENT…`: runs the program and writes to the file how it ended.
pub fn measure(usage: &Path, command: &[OsString]) -> Result<(), Error> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let spelled = format!("{command:?}");
    let failed = |source| Error::start(&spelled)(source);
    setrlimit(Resource::RLIMIT_AS, ADDRESS_SPACE, ADDRESS_SPACE).map_err(|e| failed(e.into()))?;
    let start = Instant::now();
    let mut child =
        Command::new(program).args(arguments).process_group(0).spawn().map_err(failed)?;
    let group = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    let mut hung = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if !hung && start.elapsed() > TIME_LIMIT {
            hung = true;
            // It fails only if the group has ended.
            let _ = killpg(group, Signal::SIGKILL);
        }
        std::thread::sleep(PAUSE);
    };
    let millis = start.elapsed().as_millis();
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.max_rss());
    let number = |number: Option<i32>| number.map_or("-".to_owned(), |number| number.to_string());
    let text =
        format!("{} {} {hung} {millis} {peak}", number(status.code()), number(status.signal()));
    std::fs::write(usage, text).map_err(Error::file(usage))
}

fn parse(text: &str) -> Option<Ended> {
    let fields: Vec<&str> = text.split(' ').collect();
    let &[code, signal, hung, millis, peak] = &fields[..] else { return None };
    Some(Ended {
        code: code.parse().ok(),
        signal: signal.parse().ok(),
        hung: hung.parse().ok()?,
        millis: millis.parse().ok()?,
        peak_kib: peak.parse().ok()?,
        ..Ended::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_and_the_memory_of_a_run_are_measured() {
        let usage = std::env::temp_dir().join(format!("xmem-attack-{}", std::process::id()));
        let run = |script: &str| {
            let command = ["sh", "-c", script].map(OsString::from);
            measure(&usage, &command).expect("sh runs");
            parse(&std::fs::read_to_string(&usage).expect("written")).expect("complete")
        };
        let ended = run("exit 7");
        assert_eq!((ended.code, ended.signal, ended.hung), (Some(7), None, false));
        assert!(ended.peak_kib > 100);
        assert_eq!(run("kill -SEGV $$").signal, Some(11));
        std::fs::remove_file(&usage).expect("written");
    }
}
