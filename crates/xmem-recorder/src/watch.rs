//! Runs the command and watches it: what the hook says, time, memory, signals.

mod exports;
mod processes;
mod signals;

use crate::error::{Fate, RecordError};
use crate::host::Host;
use crate::isolated;
use crate::message::{Line, Message, ProcessId, StopWord};
use crate::output::Output;
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::request::{Request, Shortage};
use crate::session::{Said, Session};
use crate::tree::{self, Tree};
use crate::verdict::{self, Evidence};
pub(crate) use exports::{Export, State};
pub(crate) use processes::Processes;

use exports::Exports;
use nix::sys::signal::Signal;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use xmem_types::Bytes;

/// How often it is looked whether the command has ended.
const TICK: Duration = Duration::from_millis(50);

/// How often memory is measured.
const LOOK: Duration = Duration::from_millis(250);

/// How often new processes are looked for, which takes a look at all of the host.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// How often memory is measured in the way that takes long.
const THOROUGH_LOOK: Duration = Duration::from_secs(2);

/// What comes in from other threads.
enum News {
    Said(Said),
    Streamed(exports::Ended),
    Signal(Signal),
}

/// Runs the command of a request to its end.
pub(crate) fn run(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<Recorded, RecordError> {
    let (program, arguments) = &request.command;
    if let Some(option) = isolated::option(program, arguments.iter().map(AsRef::as_ref)) {
        return Err(RecordError::Isolated { option });
    }
    let output = Output::check(&request.output)?;
    let session = Session::open(request).map_err(|source| RecordError::Session { source })?;
    let (sender, inbox) = mpsc::channel();
    signals::forward(sender.clone()).map_err(|source| RecordError::Session { source })?;
    let control = session.control().map_err(|source| RecordError::Session { source })?;
    let heard = sender.clone();
    std::thread::spawn(move || {
        let heard = |said| heard.send(News::Said(said)).is_ok();
        { control }.all(heard)
    });
    let started = Instant::now();
    let child = Command::new(program)
        .args(arguments)
        .envs(session.environment(std::env::var_os("PYTHONPATH")))
        .spawn()
        .map_err(|source| RecordError::Spawn {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
    let mut watch = Watch {
        request,
        session: &session,
        observer,
        started,
        tree: Tree::of(child.id()),
        child,
        status: None,
        host: Host::new(),
        memory: Memory::default(),
        processes: Processes::default(),
        exports: Exports::new(output.clone(), sender),
        halt: None,
        phase: Phase::Running,
        marks: Marks::default(),
        told_of_no_hook: false,
    };
    let status = watch.follow(&inbox).map_err(|source| RecordError::Session { source })?;
    let took = started.elapsed();
    let evidence = Evidence {
        status,
        halt: watch.halt,
        peak: watch.memory.peak,
        limit: request.memory,
        total: watch.host.look().total,
        took,
        processes: std::mem::take(&mut watch.processes),
        exports: watch.exports.take(),
    };
    drop(watch);
    verdict::reach(evidence, &output)
}

/// All that is known while the command runs.
struct Watch<'a> {
    request: &'a Request,
    session: &'a Session,
    observer: &'a mut dyn FnMut(Progress<'_>),
    started: Instant,
    child: Child,
    status: Option<ExitStatus>,
    tree: Tree,
    host: Host,
    memory: Memory,
    processes: Processes,
    exports: Exports,
    /// Why the recording is being ended from here.
    halt: Option<Fate>,
    phase: Phase,
    marks: Marks,
    told_of_no_hook: bool,
}

/// What was measured.
#[derive(Debug, Default)]
struct Memory {
    resident: Bytes,
    peak: Bytes,
    looked: Option<Instant>,
    looked_around: Option<Instant>,
    looked_thoroughly: Option<Instant>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nobody wants it.
    Running,
    /// The hook was asked to save and to end the script.
    Asked { at: Instant },
    /// The processes were told to end.
    Terminated { at: Instant, exports: Mercy },
    /// The processes were killed.
    Killed,
}

/// What becomes of exports under way when processes are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mercy {
    /// They are waited for.
    Spared,
    /// They die with their process.
    Killed,
}

/// Marks put behind what the hook said, and how many of them were read.
#[derive(Debug, Default)]
struct Marks {
    put: u32,
    read: u32,
    /// Read up to this one, everything is known.
    last: Option<u32>,
}

impl Watch<'_> {
    fn follow(&mut self, inbox: &Receiver<News>) -> std::io::Result<ExitStatus> {
        loop {
            match inbox.recv_timeout(TICK) {
                Ok(news) => self.hear(news)?,
                // This process itself holds a sender.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.tick()?;
            match self.status.filter(|_| self.is_quiet()) {
                None => self.marks.last = None,
                Some(status) => match self.marks.last {
                    Some(last) if self.marks.read >= last => return Ok(status),
                    Some(_) => {}
                    None => {
                        self.session.mark()?;
                        self.marks.put += 1;
                        self.marks.last = Some(self.marks.put);
                    }
                },
            }
        }
    }

    /// Whether nothing more is to be expected of any process.
    fn is_quiet(&self) -> bool {
        let busy = |pid: ProcessId| self.tree.has(pid) && !self.exports.are_told(pid);
        !self.exports.are_running() && !self.processes.recording().any(busy)
    }

    fn hear(&mut self, news: News) -> std::io::Result<()> {
        match news {
            News::Said(Said::Mark) => self.marks.read += 1,
            News::Said(Said::Line(Line { pid, message })) => self.note(pid, message),
            News::Streamed(ended) => {
                self.exports.ended(ended);
                if !self.exports.are_running() {
                    (self.observer)(Progress::Exported);
                }
            }
            News::Signal(signal) => self.interrupted(signal),
        }
        Ok(())
    }

    fn note(&mut self, pid: ProcessId, message: Message) {
        if !self.tree.has(pid) {
            self.tree.look();
        }
        match &message {
            Message::Python { version } => (self.observer)(Progress::Python { version }),
            Message::Torch { version } => (self.observer)(Progress::Torch { version }),
            Message::Recording => (self.observer)(Progress::Recording),
            Message::Note { text } => (self.observer)(Progress::Note(text)),
            Message::Iteration { number, seconds, of } => (self.observer)(Progress::Iteration {
                number: *number,
                of,
                took: Duration::try_from_secs_f64(*seconds).unwrap_or_default(),
                resident: self.memory.resident,
            }),
            Message::Export(export) => {
                if self.session.owns(&export.path) {
                    self.exports.begin(pid, export.clone());
                }
            }
            Message::Exported { streamed } => self.exports.exported(pid, *streamed),
            Message::Failed { .. } => self.exports.failed(pid),
            Message::Unsupported { .. } | Message::Other => {}
        }
        self.processes.note(pid, message);
    }

    /// The first signal is a wish to end with what there is, the second one to end, the third one to end
    /// now.
    fn interrupted(&mut self, signal: Signal) {
        if self.halt == Some(Fate::Interrupted) {
            match self.phase {
                Phase::Terminated { .. } => self.kill(),
                Phase::Killed => {}
                Phase::Running | Phase::Asked { .. } => self.terminate(Mercy::Killed),
            }
            return;
        }
        (self.observer)(Progress::Interrupted);
        self.halt = Some(Fate::Interrupted);
        // Ctrl-C reaches the command by itself.
        if signal != Signal::SIGINT {
            self.tree.look();
            self.tree.signal(signal);
            self.phase = Phase::Asked { at: Instant::now() };
        }
    }

    fn tick(&mut self) -> std::io::Result<()> {
        let now = Instant::now();
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                // Those that it leaves behind are still its children at the last look.
                self.tree.look();
            }
        }
        if self.memory.looked.is_none_or(|at| now - at >= LOOK) {
            self.memory.looked = Some(now);
            if self.memory.looked_around.is_none_or(|at| now - at >= LOOK_AROUND) {
                self.memory.looked_around = Some(now);
                self.tree.look();
            } else {
                self.tree.look_at_members();
            }
            let shortage = self.measure(now);
            self.exports.release_those_of_the_dead(&self.tree);
            if let Some(shortage) = shortage
                && self.may_be_halted()
            {
                (self.observer)(Progress::MemoryIsShort);
                self.halt(Fate::Memory(shortage), StopWord::Memory)?;
            }
            if let Some(written) = self.exports.written() {
                (self.observer)(Progress::Exporting { written });
            }
        }
        if let Some(limit) = self.request.timeout
            && now - self.started >= limit
            && self.may_be_halted()
        {
            (self.observer)(Progress::TimeIsOver);
            self.halt(Fate::Timeout(limit), StopWord::Timeout)?;
        }
        if !self.told_of_no_hook
            && self.processes.is_empty()
            && now - self.started >= self.request.patience.to_load
        {
            self.told_of_no_hook = true;
            (self.observer)(Progress::NoHookYet { since: now - self.started });
        }
        self.press_on(now)
    }

    fn measure(&mut self, now: Instant) -> Option<Shortage> {
        let resident = self.tree.resident();
        self.memory.resident = resident;
        self.memory.peak = self.memory.peak.max(resident);
        let room = self.host.look();
        if room.is_short() {
            let (total, available) = (room.total, room.available);
            return Some(Shortage::Host { resident, total, available });
        }
        let limit = self.request.memory.filter(|limit| resident > *limit)?;
        if self.memory.looked_thoroughly.is_some_and(|at| now - at < THOROUGH_LOOK) {
            return None;
        }
        self.memory.looked_thoroughly = Some(now);
        let resident = self.tree.resident_once();
        (resident > limit).then_some(Shortage::Limit { limit, resident })
    }

    /// Whether an end from here would be news: an export that is under way is the end already.
    fn may_be_halted(&self) -> bool {
        let ending = self.exports.are_running() || self.exports.complete_at().is_some();
        self.halt.is_none() && self.status.is_none() && !ending
    }

    /// Asks the hook to save what there is, and to end the script.
    fn halt(&mut self, why: Fate, word: StopWord) -> std::io::Result<()> {
        self.halt = Some(why);
        self.ask(word)
    }

    /// Sends the signal to those that know it and have a recording to save; if there are none, the
    /// command is ended.
    fn ask(&mut self, word: StopWord) -> std::io::Result<()> {
        let alive = |pid: &ProcessId| self.tree.has(*pid) && !self.exports.are_begun(*pid);
        let asked: Vec<ProcessId> = self.processes.recording().filter(alive).collect();
        if asked.is_empty() {
            self.terminate(Mercy::Spared);
            return Ok(());
        }
        self.session.stop(word)?;
        for pid in asked {
            tree::send(pid, Signal::SIGUSR2);
        }
        self.phase = Phase::Asked { at: Instant::now() };
        Ok(())
    }

    /// Goes on with the end where those who were asked do not see to it.
    fn press_on(&mut self, now: Instant) -> std::io::Result<()> {
        let patience = self.request.patience;
        let exporting = self.exports.are_running();
        match self.phase {
            Phase::Terminated { at, exports } => {
                let spared = exporting && exports == Mercy::Spared;
                if !spared && now - at >= patience.to_terminate {
                    self.kill();
                }
            }
            // What was started since it was looked last.
            Phase::Killed => self.tree.signal(Signal::SIGKILL),
            Phase::Asked { .. } | Phase::Running if exporting => {}
            Phase::Asked { at } => match self.exports.last_end_since(at) {
                None if now - at >= patience.to_export => self.terminate(Mercy::Spared),
                Some(end) if now - end >= patience.to_end => self.end_what_stays(),
                _ => {}
            },
            Phase::Running => match self.exports.complete_at() {
                Some(end) if now - end >= patience.to_end => self.end_what_stays(),
                // In the background something records that nobody waits for any more.
                None if self.status.is_some() && !self.is_quiet() => self.ask(StopWord::Timeout)?,
                _ => {}
            },
        }
        Ok(())
    }

    /// Ends a command that goes on after its recording was saved.
    fn end_what_stays(&mut self) {
        (self.observer)(Progress::EndingTheCommand);
        self.terminate(Mercy::Spared);
    }

    fn kill(&mut self) {
        self.tree.look();
        self.tree.signal(Signal::SIGKILL);
        self.phase = Phase::Killed;
    }

    fn terminate(&mut self, exports: Mercy) {
        self.tree.look();
        self.tree.signal(Signal::SIGTERM);
        self.phase = Phase::Terminated { at: Instant::now(), exports };
    }
}

impl Drop for Watch<'_> {
    /// Leaves nobody behind when watching itself fails.
    fn drop(&mut self) {
        if self.status.is_none() {
            self.tree.look();
            self.tree.signal(Signal::SIGKILL);
            // There is nobody to tell any more.
            let _ = self.child.wait();
        }
    }
}
