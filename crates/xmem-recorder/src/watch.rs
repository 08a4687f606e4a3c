//! Runs the command and watches it: messages of the hook, time, memory, signals.

use crate::conclusion::{self, Evidence};
use crate::error::{CommandEnd, RecordError};
use crate::exports::{Exports, ReadExport};
use crate::host::Host;
use crate::interpreter;
use crate::message::{Line, Message, ProcessId, StopReason};
use crate::output::Output;
use crate::processes::Processes;
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::request::{Request, Shortage};
use crate::session::{ControlItem, Session};
use crate::signals;
use crate::tree::{self, Tree};
use nix::sys::signal::Signal;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use xmem_types::Bytes;

/// The longest time between two checks of the command.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time between two measurements of memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(250);

/// The time between two searches for new processes, each of which lists all processes of the host.
const PROCESS_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two measurements with shared memory counted once, which are slow.
const PROPORTIONAL_INTERVAL: Duration = Duration::from_secs(2);

/// An event from another thread.
enum Event {
    /// From the control pipe.
    Control(ControlItem),
    /// A trace has been read to its end.
    ExportRead(ReadExport),
    /// A signal to this process.
    Signal(Signal),
}

impl From<ReadExport> for Event {
    fn from(export: ReadExport) -> Self {
        Self::ExportRead(export)
    }
}

impl From<Signal> for Event {
    fn from(signal: Signal) -> Self {
        Self::Signal(signal)
    }
}

/// Runs the command of a request to its end.
pub(crate) fn run(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<Recorded, RecordError> {
    let (program, arguments) = &request.command;
    let rest = arguments.iter().map(AsRef::as_ref);
    if let Some(option) = interpreter::option_against_the_hook(program, rest) {
        return Err(RecordError::HookDisabled { option });
    }
    let output = Output::check(&request.output)?;
    let session = Session::open(request).map_err(|source| RecordError::Session { source })?;
    let (sender, events) = mpsc::channel();
    signals::forward(sender.clone()).map_err(|source| RecordError::Session { source })?;
    let control = session.control().map_err(|source| RecordError::Session { source })?;
    let to = sender.clone();
    std::thread::spawn(move || { control }.all(|item| to.send(Event::Control(item)).is_ok()));
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
        hook_reminder_sent: false,
    };
    let status = watch.follow(&events).map_err(|source| RecordError::Session { source })?;
    let took = started.elapsed();
    let evidence = Evidence {
        status,
        halt: watch.halt,
        peak: watch.memory.peak,
        limit: request.memory,
        total: watch.host.memory().total,
        took,
        processes: std::mem::take(&mut watch.processes),
        exports: watch.exports.take(),
    };
    drop(watch);
    conclusion::conclude(evidence, &output)
}

/// The state of a command that runs.
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
    exports: Exports<Event>,
    /// The reason why this process ends the recording, if it does.
    halt: Option<CommandEnd>,
    phase: Phase,
    marks: Marks,
    hook_reminder_sent: bool,
}

/// The memory of the command's processes.
#[derive(Debug, Default)]
struct Memory {
    resident: Bytes,
    peak: Bytes,
    /// The time of the last measurement.
    measured: Option<Instant>,
    /// The time of the last search for processes.
    searched: Option<Instant>,
    /// The time of the last measurement with shared memory counted once.
    measured_proportionally: Option<Instant>,
}

/// The steps to the end of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The command runs.
    Running,
    /// The hook was asked to save the recording and to end the script.
    Requested { at: Instant },
    /// The processes got SIGTERM.
    Terminated { at: Instant, exports: RunningExports },
    /// The processes got SIGKILL.
    Killed,
}

/// The treatment of exports under way when their processes must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunningExports {
    /// They are waited for.
    Finish,
    /// They end with their process.
    Abort,
}

/// Marks written to the control pipe, each behind all messages so far.
#[derive(Debug, Default)]
struct Marks {
    written: u32,
    read: u32,
    /// Once this one is read, all messages are known.
    last: Option<u32>,
}

impl Watch<'_> {
    fn follow(&mut self, events: &Receiver<Event>) -> std::io::Result<ExitStatus> {
        loop {
            match events.recv_timeout(POLL_INTERVAL) {
                Ok(event) => self.handle(event)?,
                // Never disconnected: this thread holds a sender.
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
                        self.marks.written += 1;
                        self.marks.last = Some(self.marks.written);
                    }
                },
            }
        }
    }

    /// True if no process has more to report.
    fn is_quiet(&self) -> bool {
        let busy = |pid: ProcessId| self.tree.has(pid) && !self.exports.has_report_of(pid);
        !self.exports.are_running() && !self.processes.recording().any(busy)
    }

    fn handle(&mut self, event: Event) -> std::io::Result<()> {
        match event {
            Event::Control(ControlItem::Mark) => self.marks.read += 1,
            Event::Control(ControlItem::Line(Line { pid, message })) => self.note(pid, message),
            Event::ExportRead(export) => {
                self.exports.read(export);
                if !self.exports.are_running() {
                    (self.observer)(Progress::Exported);
                }
            }
            Event::Signal(signal) => self.interrupted(signal),
        }
        Ok(())
    }

    fn note(&mut self, pid: ProcessId, message: Message) {
        if !self.tree.has(pid) {
            self.tree.refresh();
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

    /// The first signal requests an end with the recording so far, the second one without, the third
    /// one kills.
    fn interrupted(&mut self, signal: Signal) {
        if self.halt == Some(CommandEnd::Interrupted) {
            match self.phase {
                Phase::Terminated { .. } => self.kill(),
                Phase::Killed => {}
                Phase::Running | Phase::Requested { .. } => self.terminate(RunningExports::Abort),
            }
            return;
        }
        (self.observer)(Progress::Interrupted);
        self.halt = Some(CommandEnd::Interrupted);
        // The terminal sends Ctrl-C to the command, too.
        if signal != Signal::SIGINT {
            self.tree.refresh();
            self.tree.signal(signal);
            self.phase = Phase::Requested { at: Instant::now() };
        }
    }

    fn tick(&mut self) -> std::io::Result<()> {
        let now = Instant::now();
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                // Processes that it leaves behind were its children at the last refresh.
                self.tree.refresh();
            }
        }
        if self.memory.measured.is_none_or(|at| now - at >= MEMORY_INTERVAL) {
            self.memory.measured = Some(now);
            if self.memory.searched.is_none_or(|at| now - at >= PROCESS_INTERVAL) {
                self.memory.searched = Some(now);
                self.tree.refresh();
            } else {
                self.tree.refresh_members();
            }
            let shortage = self.measure(now);
            self.exports.release_abandoned(&self.tree);
            if let Some(shortage) = shortage
                && self.can_be_stopped()
            {
                (self.observer)(Progress::MemoryLow);
                self.stop(CommandEnd::Memory(shortage), StopReason::Memory)?;
            }
            if let Some(written) = self.exports.written() {
                (self.observer)(Progress::Exporting { written });
            }
        }
        if let Some(limit) = self.request.timeout
            && now - self.started >= limit
            && self.can_be_stopped()
        {
            (self.observer)(Progress::TimeLimitReached);
            self.stop(CommandEnd::Timeout(limit), StopReason::Timeout)?;
        }
        if !self.hook_reminder_sent
            && self.processes.is_empty()
            && now - self.started >= self.request.timeouts.hook
        {
            self.hook_reminder_sent = true;
            (self.observer)(Progress::HookNotLoaded { elapsed: now - self.started });
        }
        self.escalate(now)
    }

    fn measure(&mut self, now: Instant) -> Option<Shortage> {
        let resident = self.tree.resident();
        self.memory.resident = resident;
        self.memory.peak = self.memory.peak.max(resident);
        let host = self.host.memory();
        if host.is_short() {
            let (total, available) = (host.total, host.available);
            return Some(Shortage::Host { resident, total, available });
        }
        let limit = self.request.memory.filter(|limit| resident > *limit)?;
        if self.memory.measured_proportionally.is_some_and(|at| now - at < PROPORTIONAL_INTERVAL) {
            return None;
        }
        self.memory.measured_proportionally = Some(now);
        let resident = self.tree.proportional();
        (resident > limit).then_some(Shortage::Limit { limit, resident })
    }

    /// True unless the command is already ending; an export under way is its end.
    fn can_be_stopped(&self) -> bool {
        let ending = self.exports.are_running() || self.exports.complete_at().is_some();
        self.halt.is_none() && self.status.is_none() && !ending
    }

    /// Asks the hook to save the recording so far and to end the script.
    fn stop(&mut self, end: CommandEnd, reason: StopReason) -> std::io::Result<()> {
        self.halt = Some(end);
        self.request_export(reason)
    }

    /// Sends the signal to the processes that handle it and have a recording to save; without such a
    /// process, terminates the command.
    fn request_export(&mut self, reason: StopReason) -> std::io::Result<()> {
        let alive = |pid: &ProcessId| self.tree.has(*pid) && !self.exports.has_begun(*pid);
        let recording: Vec<ProcessId> = self.processes.recording().filter(alive).collect();
        if recording.is_empty() {
            self.terminate(RunningExports::Finish);
            return Ok(());
        }
        self.session.stop(reason)?;
        for pid in recording {
            tree::send(pid, Signal::SIGUSR2);
        }
        self.phase = Phase::Requested { at: Instant::now() };
        Ok(())
    }

    /// Takes the next step to the end where the last one had no effect in time.
    fn escalate(&mut self, now: Instant) -> std::io::Result<()> {
        let timeouts = self.request.timeouts;
        let exporting = self.exports.are_running();
        match self.phase {
            Phase::Terminated { at, exports } => {
                let waiting = exporting && exports == RunningExports::Finish;
                if !waiting && now - at >= timeouts.terminate {
                    self.kill();
                }
            }
            // Processes that were started since the last refresh.
            Phase::Killed => self.tree.signal(Signal::SIGKILL),
            Phase::Requested { .. } | Phase::Running if exporting => {}
            Phase::Requested { at } => match self.exports.last_end_since(at) {
                None if now - at >= timeouts.export => self.terminate(RunningExports::Finish),
                Some(end) if now - end >= timeouts.exit => self.end_lingering_command(),
                _ => {}
            },
            Phase::Running => match self.exports.complete_at() {
                Some(end) if now - end >= timeouts.exit => self.end_lingering_command(),
                // A process in the background still records after the command has ended.
                None if self.status.is_some() && !self.is_quiet() => {
                    self.request_export(StopReason::Timeout)?;
                }
                _ => {}
            },
        }
        Ok(())
    }

    /// Ends a command that continues after its recording was saved.
    fn end_lingering_command(&mut self) {
        (self.observer)(Progress::EndingCommand);
        self.terminate(RunningExports::Finish);
    }

    fn kill(&mut self) {
        self.tree.refresh();
        self.tree.signal(Signal::SIGKILL);
        self.phase = Phase::Killed;
    }

    fn terminate(&mut self, exports: RunningExports) {
        self.tree.refresh();
        self.tree.signal(Signal::SIGTERM);
        self.phase = Phase::Terminated { at: Instant::now(), exports };
    }
}

impl Drop for Watch<'_> {
    /// Leaves no process behind when this process fails to watch.
    fn drop(&mut self) {
        if self.status.is_none() {
            self.tree.refresh();
            self.tree.signal(Signal::SIGKILL);
            // An error means that the process has ended.
            let _ = self.child.wait();
        }
    }
}
