//! Runs the command and watches it: messages of the hook, time, memory, signals.

use crate::conclusion::{self, Evidence};
use crate::control::{Control, Reading};
use crate::engines::Engines;
use crate::error::{CommandEnd, RecordError};
use crate::interpreter;
use crate::memory::Memory;
use crate::message::{FoundTorch, Message, ProcessId, StopReason};
use crate::output::Output;
use crate::process_exports::{Exports, ReadExport};
use crate::processes::Processes;
use crate::progress::{MAX_SURVIVORS, Progress};
use crate::recorded::Recorded;
use crate::request::{Engine, Request};
use crate::session::{self, Session};
use crate::signals::{self, Arrived, Received, Sender};
use crate::snapshot;
use crate::tree::{self, Tree};
use nix::sys::signal::Signal;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use xmem_overlay::{Method, Overlay};
use xmem_types::Bytes;

/// The longest time between two checks of the command.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The time between two messages that the command runs.
const RUNNING_INTERVAL: Duration = Duration::from_secs(1);

/// The longest wait for the end of processes that got SIGKILL.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// The longest wait for a signal on its way between threads.
const SIGNAL_LIMIT: Duration = Duration::from_secs(5);

/// The time in which the processes of the command may react to Ctrl-C themselves, before it is passed on to them: it was
/// sent to this process, and perhaps not to them.
const INTERRUPT_GRACE: Duration = Duration::from_secs(1);

/// Notes that are passed on: a script can invent them.
const MAX_NOTES: u32 = 100;

/// Readings of the control pipe after the end of the command, of which none emptied it: a process that it left
/// behind writes without end.
const MAX_LAST_READINGS: u32 = 100;

/// An event from another thread.
enum Event {
    /// A trace has been read to its end.
    ExportRead(ReadExport),
    /// A signal to this process.
    Signal(Received),
}

impl From<ReadExport> for Event {
    fn from(export: ReadExport) -> Self {
        Self::ExportRead(export)
    }
}

impl From<Received> for Event {
    fn from(signal: Received) -> Self {
        Self::Signal(signal)
    }
}

/// Runs the command of a request to its end, and saves what it exports.
pub(crate) fn run(
    request: &Request,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<Recorded, RecordError> {
    let output = Output::check(&request.output)?;
    let (evidence, overlay) = watched(request, Some(&output), observer)?;
    let ignored: Vec<(ProcessId, &str)> =
        evidence.exports.iter().filter_map(|e| Some((e.pid, e.other_content()?))).collect();
    let result = conclusion::conclude(evidence, &output);
    let kept = overlay.kept();
    if !kept.is_nothing() {
        observer(Progress::Kept(&kept));
    }
    if result.is_ok() {
        for (process, found) in ignored {
            observer(Progress::ExportIgnored { process, found });
        }
        snapshot::deliver(request, &overlay)?;
    }
    result
}

/// Runs the command of a request to its end; the exports go to parts of `output`, if there is one.
pub(crate) fn watched(
    request: &Request,
    output: Option<&Output>,
    observer: &mut dyn FnMut(Progress<'_>),
) -> Result<(Evidence, Overlay), RecordError> {
    let (program, arguments) = &request.command;
    let rest = arguments.iter().map(AsRef::as_ref);
    if let Some(option) = interpreter::option_against_the_hook(program, rest) {
        return Err(RecordError::HookDisabled { option });
    }
    let overlay = Overlay::prepare(
        (program, arguments),
        &request.writable,
        request.overlay,
        request.helper.as_deref(),
    )
    .map_err(|source| RecordError::Overlay { source })?;
    if let Method::Unavailable(reason) = overlay.method() {
        observer(Progress::WritesRefused { reason });
    }
    let (session, control) =
        Session::open(request, &overlay).map_err(|source| RecordError::Session { source })?;
    let (sender, events) = mpsc::channel();
    let arrived =
        signals::forward(sender.clone()).map_err(|source| RecordError::Session { source })?;
    let started = Instant::now();
    let not_started =
        |source| RecordError::Spawn { program: program.to_string_lossy().into_owned(), source };
    let present = |name: &str| std::env::var_os(name);
    let child = overlay
        .command(program, &session.arguments(program, arguments))
        .and_then(|mut command| {
            command.envs(session.environment(request, present));
            command.envs(overlay.environment(present));
            command.envs(request.variables.iter().map(|(name, value)| (name, value)));
            if let Some(file) = &request.printed {
                print_to(file, &mut command)?;
            }
            command.spawn()
        })
        .map_err(not_started)?;
    let mut watch = Watch {
        request,
        session: &session,
        control,
        arrived,
        observer,
        started,
        tree: Tree::of(child.id()),
        child,
        status: None,
        ended: None,
        memory: Memory::new(),
        processes: Processes::default(),
        exports: Exports::new(output.cloned(), request.timeouts.stall, sender),
        halt: None,
        phase: Phase::Running,
        engines: Engines::default(),
        notes: 0,
        hook_reminder_sent: false,
        shown_at: started,
    };
    let status = watch.follow(&events).map_err(|source| RecordError::Session { source })?;
    let took = started.elapsed();
    if let Some(source) = overlay.not_started() {
        return Err(not_started(source));
    }
    let evidence = Evidence {
        status,
        halt: watch.halt,
        peak: watch.memory.peak(),
        limit: request.memory,
        total: watch.memory.total(),
        took,
        processes: std::mem::take(&mut watch.processes),
        exports: watch.exports.take(),
    };
    drop(watch);
    Ok((evidence, overlay))
}

/// Sends what a command prints to a file, and gives it nothing to read.
fn print_to(file: &Path, command: &mut Command) -> std::io::Result<()> {
    let file = File::create(file)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    Ok(())
}

/// The state of a command that runs.
struct Watch<'a> {
    request: &'a Request,
    session: &'a Session,
    control: Control,
    arrived: Arrived,
    observer: &'a mut dyn FnMut(Progress<'_>),
    started: Instant,
    child: Child,
    status: Option<ExitStatus>,
    /// The time at which the end of the command was seen.
    ended: Option<Instant>,
    tree: Tree,
    memory: Memory,
    processes: Processes,
    exports: Exports<Event>,
    /// The reason why this process ends the recording, if it does.
    halt: Option<CommandEnd>,
    phase: Phase,
    engines: Engines,
    /// Notes passed on.
    notes: u32,
    hook_reminder_sent: bool,
    /// The time at which the observer was told that the command runs.
    shown_at: Instant,
}

/// The steps to the end of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The command runs.
    Running,
    /// This process got a Ctrl-C that the command may not have got.
    Interrupted { at: Instant },
    /// The hook was asked to save the recording and to end the script.
    Requested { at: Instant },
    /// The processes got SIGTERM.
    Terminated { at: Instant, exports: RunningExports },
    /// The processes got SIGKILL.
    Killed { at: Instant },
}

/// The treatment of exports under way when their processes must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunningExports {
    /// They are waited for.
    Finish,
    /// They end with their process.
    Abort,
}

impl Watch<'_> {
    fn follow(&mut self, events: &Receiver<Event>) -> std::io::Result<ExitStatus> {
        let mut last_readings = 0;
        loop {
            match events.recv_timeout(POLL_INTERVAL) {
                Ok(event) => self.handle(event),
                // Never disconnected: this thread holds a sender.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.tick()?;
            // After the processes were looked at: all that an ended one wrote is in the pipe.
            let is_drained = self.read_messages();
            let Some(status) = self.status else { continue };
            last_readings += 1;
            if is_drained || last_readings >= MAX_LAST_READINGS {
                last_readings = 0;
                let is_quiet = self.is_quiet() && !self.awaits_signal();
                if self.is_beyond_reach() || is_quiet && self.is_settled() {
                    return Ok(status);
                }
            }
        }
    }

    /// Handles the messages that have arrived; returns true if the pipe was empty at the end.
    fn read_messages(&mut self) -> bool {
        let Reading { lines, is_drained } = self.control.read();
        if lines.iter().any(|line| !self.tree.has(line.pid)) {
            self.tree.refresh();
        }
        for line in lines {
            self.note(line.pid, line.message);
        }
        is_drained
    }

    /// True if the processes that the command started have ended, or had the time for it. Those that outlive
    /// it are named.
    fn is_settled(&mut self) -> bool {
        if self.tree.is_empty() {
            return true;
        }
        let since = match self.phase {
            Phase::Terminated { .. } => return false,
            Phase::Killed { at } => Some(at),
            Phase::Running | Phase::Interrupted { .. } | Phase::Requested { .. } => self.ended,
        };
        if since.is_some_and(|since| since.elapsed() < self.request.timeouts.linger) {
            return false;
        }
        self.tree.refresh();
        self.tree.adopt(session::VARIABLE, self.session.folder().as_os_str());
        let mut processes = self.tree.names();
        let count = processes.len();
        processes.truncate(MAX_SURVIVORS);
        if count > 0 {
            (self.observer)(Progress::StillRunning { processes: &processes, count });
        }
        true
    }

    /// True if processes do not even end after SIGKILL: the kernel waits for a device or a file server.
    fn is_beyond_reach(&self) -> bool {
        matches!(self.phase, Phase::Killed { at } if at.elapsed() >= KILL_LIMIT)
    }

    /// True if a signal has arrived that another thread is about to pass on.
    fn awaits_signal(&self) -> bool {
        let has_time = self.ended.is_some_and(|ended| ended.elapsed() < SIGNAL_LIMIT);
        self.halt != Some(CommandEnd::Interrupted)
            && self.arrived.load(Ordering::Relaxed)
            && has_time
    }

    /// True if no process has more to report.
    fn is_quiet(&self) -> bool {
        let busy = |pid: ProcessId| self.tree.has(pid) && !self.exports.has_report_of(pid);
        !self.exports.are_running() && !self.processes.recording().any(busy)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::ExportRead(export) => {
                self.exports.read(export);
                if !self.exports.are_running() {
                    (self.observer)(Progress::Exported);
                }
            }
            Event::Signal(signal) => self.interrupted(signal),
        }
    }

    fn note(&mut self, pid: ProcessId, message: Message) {
        match &message {
            Message::Python { version } => (self.observer)(Progress::Python { version }),
            Message::Engine(found) => self.choose_engine(pid, found),
            Message::Torch { version, engine } => {
                let engine = Engine::of_process(engine.as_deref());
                (self.observer)(Progress::Torch { version, engine });
            }
            Message::Recording => (self.observer)(Progress::Recording),
            Message::Model { name, parameters, bytes } => {
                self.pass_on(Progress::Model {
                    name,
                    parameters: *parameters,
                    size: Bytes(*bytes),
                });
            }
            Message::Note { text } => self.pass_on(Progress::Note(text)),
            Message::Measure { name, places, text } => {
                self.pass_on(Progress::Measure { name, places: *places, text });
            }
            Message::Shadowed { module, path } if module != "torch" => {
                self.pass_on(Progress::Shadowed { module, path });
            }
            Message::Iteration { number, seconds, of } => (self.observer)(Progress::Iteration {
                number: *number,
                of,
                took: Duration::try_from_secs_f64(*seconds).unwrap_or_default(),
                resident: self.memory.resident(),
            }),
            Message::Rest => (self.observer)(Progress::Rest),
            Message::Export(export) => {
                if self.session.owns(&export.path) && !self.exports.begin(pid, export.clone()) {
                    self.pass_on(Progress::TooManyExports);
                }
            }
            Message::Exported { streamed } => self.exports.exported(pid, *streamed),
            Message::Failed { .. } => self.exports.failed(pid),
            Message::Unsupported { .. }
            | Message::NoVirtualGpu { .. }
            | Message::OtherUser { .. }
            | Message::Shadowed { .. }
            | Message::ImportFailed { .. }
            | Message::Raised { .. }
            | Message::Missing { .. }
            | Message::Graph(_)
            | Message::NoGraph { .. }
            | Message::Other => {}
        }
        self.processes.note(pid, message);
    }

    /// Answers a process that is about to import PyTorch.
    fn choose_engine(&mut self, pid: ProcessId, found: &FoundTorch) {
        let answer = self.engines.answer(self.request, found);
        if let Err(error) = self.session.answer(pid, &answer) {
            // The hook waits for a while, and goes on without.
            tracing::debug!(target: "xmem::recorder", %error, "the engine cannot be written");
        }
    }

    /// Passes a note of the hook on, unless there were too many.
    fn pass_on(&mut self, note: Progress<'_>) {
        match self.notes {
            0..MAX_NOTES => (self.observer)(note),
            MAX_NOTES => (self.observer)(Progress::TooManyNotes { limit: MAX_NOTES }),
            _ => return,
        }
        self.notes += 1;
    }

    /// The first signal requests an end with the recording so far, the second one without, the third
    /// one kills.
    fn interrupted(&mut self, Received { signal, sender }: Received) {
        if self.halt == Some(CommandEnd::Interrupted) {
            match self.phase {
                Phase::Terminated { .. } => self.kill(),
                Phase::Killed { .. } => {}
                Phase::Running | Phase::Interrupted { .. } | Phase::Requested { .. } => {
                    self.terminate(RunningExports::Abort);
                }
            }
            return;
        }
        (self.observer)(Progress::Interrupted);
        self.halt = Some(CommandEnd::Interrupted);
        let at = Instant::now();
        match (signal, sender) {
            // It has sent Ctrl-C to the command, too.
            (Signal::SIGINT, Sender::Terminal) => {}
            (Signal::SIGINT, Sender::Process) => self.phase = Phase::Interrupted { at },
            _ => self.pass_signal_on(signal),
        }
    }

    fn pass_signal_on(&mut self, signal: Signal) {
        self.tree.refresh();
        self.tree.signal(signal);
        self.phase = Phase::Requested { at: Instant::now() };
    }

    fn tick(&mut self) -> std::io::Result<()> {
        let now = Instant::now();
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                self.ended = Some(now);
                // Processes that it leaves behind were its children at the last refresh, or have its
                // environment.
                self.tree.refresh();
                self.tree.adopt(session::VARIABLE, self.session.folder().as_os_str());
            }
        }
        if self.memory.is_due(now) {
            let shortage = self.memory.measure(now, &mut self.tree, self.request.memory);
            self.exports.finish_abandoned(&self.tree);
            if let Some(shortage) = shortage
                && self.can_be_stopped()
            {
                (self.observer)(Progress::MemoryLow);
                self.stop(CommandEnd::Memory(shortage), StopReason::Memory);
            }
            if let Some(written) = self.exports.written() {
                (self.observer)(Progress::Exporting { written });
            } else if self.phase == Phase::Running
                && self.status.is_none()
                && self.exports.complete_at().is_none()
                && now - self.shown_at >= RUNNING_INTERVAL
            {
                self.shown_at = now;
                let (elapsed, resident) = (now - self.started, self.memory.resident());
                (self.observer)(Progress::Running { elapsed, resident });
            }
        }
        if let Some(limit) = self.request.timeout {
            self.check_time(now - self.started, limit);
        }
        if !self.hook_reminder_sent
            && self.processes.is_empty()
            && now - self.started >= self.request.timeouts.hook
        {
            self.hook_reminder_sent = true;
            (self.observer)(Progress::HookNotLoaded { elapsed: now - self.started });
        }
        self.escalate(now);
        Ok(())
    }

    fn check_time(&mut self, elapsed: Duration, limit: Duration) {
        let end = CommandEnd::Timeout(limit);
        if elapsed >= limit && self.can_be_stopped() {
            (self.observer)(Progress::TimeLimitReached);
            self.stop(end, StopReason::Timeout);
        } else if elapsed >= limit + self.request.timeouts.overtime
            && self.exports.are_running()
            && !matches!(self.phase, Phase::Terminated { .. } | Phase::Killed { .. })
        {
            (self.observer)(Progress::TimeLimitReached);
            self.halt = Some(end);
            self.terminate(RunningExports::Abort);
        }
    }

    /// True unless the command is already ending; an export under way is its end.
    fn can_be_stopped(&self) -> bool {
        let ending = self.exports.are_running() || self.exports.complete_at().is_some();
        self.halt.is_none() && self.status.is_none() && !ending
    }

    /// Asks the hook to save the recording so far and to end the script.
    fn stop(&mut self, end: CommandEnd, reason: StopReason) {
        self.halt = Some(end);
        self.request_export(reason);
    }

    /// Sends the signal to the processes that handle it and have a recording to save; without such a
    /// process, terminates the command.
    fn request_export(&mut self, reason: StopReason) {
        let alive = |pid: &ProcessId| self.tree.has(*pid) && !self.exports.has_begun(*pid);
        let recording: Vec<ProcessId> = self.processes.recording().filter(alive).collect();
        if recording.is_empty() {
            self.terminate(RunningExports::Finish);
            return;
        }
        if let Err(error) = self.session.stop(reason) {
            // The script has changed the folder. The signal alone ends the recording, too.
            tracing::debug!(target: "xmem::recorder", %error, "the reason cannot be written");
        }
        for pid in recording {
            tree::send(pid, Signal::SIGUSR2);
        }
        self.phase = Phase::Requested { at: Instant::now() };
    }

    /// Takes the next step to the end where the last one had no effect in time.
    fn escalate(&mut self, now: Instant) {
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
            Phase::Killed { .. } => self.signal(Signal::SIGKILL),
            Phase::Requested { .. } | Phase::Interrupted { .. } | Phase::Running if exporting => {}
            Phase::Interrupted { at } if now - at >= INTERRUPT_GRACE => {
                match self.exports.last_end_since(at) {
                    None if self.status.is_none() => self.pass_signal_on(Signal::SIGINT),
                    _ => self.phase = Phase::Requested { at },
                }
            }
            Phase::Interrupted { .. } => {}
            Phase::Requested { at } => match self.exports.last_end_since(at) {
                None if now - at >= timeouts.export => self.terminate(RunningExports::Finish),
                Some(end) if now - end >= timeouts.exit => self.end_lingering_command(),
                _ => {}
            },
            Phase::Running => match self.exports.complete_at() {
                Some(end) if now - end >= timeouts.exit => self.end_lingering_command(),
                // A process in the background still records after the command has ended.
                None if self.status.is_some() && !self.is_quiet() => {
                    self.request_export(StopReason::Timeout);
                }
                _ => {}
            },
        }
    }

    /// Ends a command that continues after its recording was saved.
    fn end_lingering_command(&mut self) {
        (self.observer)(Progress::EndingCommand);
        self.terminate(RunningExports::Finish);
    }

    fn kill(&mut self) {
        self.tree.refresh();
        self.signal(Signal::SIGKILL);
        self.phase = Phase::Killed { at: Instant::now() };
    }

    fn terminate(&mut self, exports: RunningExports) {
        self.tree.refresh();
        self.signal(Signal::SIGTERM);
        self.phase = Phase::Terminated { at: Instant::now(), exports };
    }

    /// Sends a signal to the processes of the command, and to those that record even if they have detached
    /// themselves.
    fn signal(&self, signal: Signal) {
        self.tree.signal(signal);
        for pid in self.processes.recording().filter(|pid| self.tree.has(*pid)) {
            tree::send(pid, signal);
        }
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
