//! Messages while a command is recorded: notes, and on a terminal the progress of the recording.
//!
//! The script writes to the same terminal. A progress bar that is redrawn would overwrite its
//! output, prompts above all; so each stage and each iteration prints a line, a stage that takes long
//! another one after 5, 10, 20, 40, … seconds, and a bar appears only while PyTorch exports the trace and
//! the script is paused. In a log, only stages that take longer than half a minute print lines.

use super::args::ProfileArgs;
use super::recording::unshadow;
use crate::global::{Global, Verbosity};
use crate::terminal::{say, shown};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};
use xmem::Bytes;
use xmem::types::printable;
use xmem_recorder::{Engine, Kept, Progress, RecordError, Recorded, Request};

/// Prints the progress of a recording.
pub(crate) struct RecordingProgress {
    steps: NonZeroU32,
    started: Instant,
    detail: Detail,
    last: RefCell<String>,
    stage: RefCell<Stage>,
    export: RefCell<Option<ProgressBar>>,
}

/// Makes a recording, and prints its progress; returns it with the engine of the process that imported PyTorch last.
pub(super) fn record(
    request: &Request,
    args: &ProfileArgs,
    global: &Global,
) -> (Result<Recorded, RecordError>, Engine) {
    let progress = RecordingProgress::new(args.steps(), global.verbosity());
    let recorded = xmem_recorder::record(request, &mut |news| progress.show(news));
    let engine = progress.stage.borrow().engine;
    (recorded, engine)
}

/// What the command does, as far as it says.
struct Stage {
    doing: Doing,
    /// When it began.
    since: Instant,
    /// The time after which the next line about it is due.
    due: Duration,
    engine: Engine,
    is_advised: bool,
}

impl Stage {
    /// Returns whether a line about a stage that has lasted so long is due; the next one is after twice the time.
    fn is_due(&mut self, lasts: Duration) -> bool {
        let is_due = lasts >= self.due;
        while lasts >= self.due {
            self.due *= 2;
        }
        is_due
    }

    /// Returns whether the virtual GPU is to be named: once, where the CPU has computed for long.
    fn takes_advice(&mut self, lasts: Duration) -> bool {
        let computes = self.engine == Engine::Cpu && self.doing != Doing::Importing;
        let takes = computes && lasts >= LONG && !self.is_advised;
        self.is_advised |= takes;
        takes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Python starts, and imports packages.
    Importing,
    /// The script prepares the job, above all its model.
    Building,
    /// An iteration runs: its number.
    Iteration(u32),
    /// What follows the recorded iterations.
    Rest,
}

impl Doing {
    fn text(self, steps: NonZeroU32) -> String {
        match self {
            Self::Importing => "starting".to_owned(),
            Self::Building => "building the model".to_owned(),
            Self::Rest => "the rest of the script".to_owned(),
            Self::Iteration(number) => format!("step {} of {steps}", number.min(steps.get())),
        }
    }
}

/// The time after which a line about a stage is due on a terminal, and in a log; each further one after twice the time.
const FIRST_LINE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// The time in a stage after which the virtual GPU is named.
const LONG: Duration = Duration::from_secs(60);

/// The amount of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// None.
    Quiet,
    /// A log file: notes only.
    Log,
    /// A terminal: notes and progress.
    Terminal,
    /// `--verbose`: everything.
    Verbose,
}

impl RecordingProgress {
    /// Starts the progress of a recording of `steps` iterations.
    pub(crate) fn new(steps: NonZeroU32, verbosity: Verbosity) -> Self {
        let detail = match verbosity {
            Verbosity::Quiet => Detail::Quiet,
            Verbosity::Normal if std::io::stderr().is_terminal() => Detail::Terminal,
            Verbosity::Normal => Detail::Log,
            Verbosity::Stages | Verbosity::Everything => Detail::Verbose,
        };
        Self {
            steps,
            started: Instant::now(),
            detail,
            last: RefCell::default(),
            stage: RefCell::new(Stage {
                doing: Doing::Importing,
                since: Instant::now(),
                due: first_line(detail),
                engine: Engine::Cpu,
                is_advised: false,
            }),
            export: RefCell::default(),
        }
    }

    /// Prints an event of the recording.
    pub(crate) fn show(&self, news: Progress<'_>) {
        match news {
            Progress::Python { version } => {
                self.line(Detail::Verbose, format!("Python {version} started"));
            }
            Progress::Torch { version, engine } => {
                self.stage.borrow_mut().engine = engine;
                let how = match engine {
                    Engine::VirtualGpu => "on a virtual GPU",
                    Engine::Cpu | Engine::Auto => "CUDA is redirected to the CPU",
                };
                self.line(Detail::Terminal, format!("torch {version}: {how}"));
            }
            Progress::Recording => {
                self.begin(Doing::Building);
                self.line(Detail::Terminal, "recording".to_owned());
            }
            Progress::Model { name, parameters, size } => {
                self.begin(Doing::Iteration(1));
                let since = self.started.elapsed().as_secs_f64();
                let text = format!("{name} with {} parameters ({size}) runs after {since:.0} s", millions(parameters));
                self.line(Detail::Terminal, text);
            }
            Progress::Running { elapsed, resident } => self.running(elapsed, resident),
            Progress::Iteration { number, of, took, resident } => {
                self.begin(Doing::Iteration(number + 1));
                let since = self.started.elapsed().as_secs_f64();
                let steps = self.steps;
                let rest = rest(took, steps.get().saturating_sub(number));
                let took = took.as_secs_f64();
                self.line(
                    Detail::Terminal,
                    format!("{of}: {number}/{steps} ({took:.1} s; total {since:.0} s, {resident}{rest})"),
                );
            }
            Progress::Rest => self.begin(Doing::Rest),
            Progress::Exporting { written } => self.exporting(&written.to_string()),
            Progress::Exported => self.clear(),
            Progress::Note(text) => self.note(text),
            Progress::Measure { name, places, text } => {
                let effect = if places == 0 { " has no effect" } else { "" };
                self.note(&format!("{name}{effect}: {text}"));
            }
            Progress::HookNotLoaded { elapsed } => self.note(&format!(
                "no Python process with xmem's hook has started after {} s; Python with -I, -E or -S, or \
                 with a cleared environment, cannot be recorded",
                elapsed.as_secs()
            )),
            Progress::Shadowed { module, path } => {
                let help = unshadow(path);
                self.note(&format!("`{}` hides the module {module}: {help}", shown(path)));
            }
            Progress::TooManyNotes { limit } => {
                self.note(&format!("there are more than {limit} notes: the others are not shown"));
            }
            Progress::TooManyExports => {
                self.note("the command exports more traces than expected: this one is not read");
            }
            Progress::ExportIgnored { process, found } => {
                self.note(&format!("process {process} exported {found} instead of a trace: ignored"));
            }
            Progress::StillRunning { processes, count } => self.note(&still_running(processes, count)),
            Progress::Kept(kept) => self.note(&kept_out(kept)),
            Progress::WritesRefused { reason } => self.note(&format!(
                "what the script writes cannot be redirected here ({reason}): writes of Python are refused; \
                 --let-write PATH or --let-write all let them pass"
            )),
            Progress::TimeLimitReached => self.note("time limit reached: saving the recorded iterations"),
            Progress::MemoryLow => self.note("memory is running out: saving the recorded iterations"),
            Progress::Interrupted => {
                self.note("interrupted: saving the recorded iterations; interrupt again to stop immediately");
            }
            Progress::EndingCommand => {
                self.note(
                    "the recording is saved, but the command is still running: stopping it, with the processes \
                     that it started",
                );
            }
        }
    }

    fn begin(&self, doing: Doing) {
        let mut stage = self.stage.borrow_mut();
        if stage.doing != doing {
            (stage.doing, stage.since, stage.due) =
                (doing, Instant::now(), first_line(self.detail));
        }
    }

    /// Prints a line about a stage that takes long, now and then.
    fn running(&self, elapsed: Duration, resident: Bytes) {
        let mut stage = self.stage.borrow_mut();
        let lasts = stage.since.elapsed();
        if !stage.is_due(lasts) {
            return;
        }
        let doing = stage.doing.text(self.steps);
        let (seconds, total) = (lasts.as_secs_f64(), elapsed.as_secs_f64());
        self.line(
            Detail::Log,
            format!("{doing}: {seconds:.0} s so far (total {total:.0} s, {resident})"),
        );
        if stage.takes_advice(lasts) {
            self.note(
                "the CPU computes the job; `xmem profile --virtual-gpu NAME` computes nothing, takes seconds and next to \
                 no memory, and needs PyTorch's CUDA build, but no GPU",
            );
        }
    }

    /// Prints a progress line, unless several processes send the same one.
    fn line(&self, to: Detail, text: String) {
        if self.detail >= to && *self.last.borrow() != text {
            say(&printable(&format!("xmem: {text}")));
            self.last.replace(text);
        }
    }

    /// Prints a note, unless messages are off.
    fn note(&self, text: &str) {
        if self.detail >= Detail::Log {
            say(&printable(&format!("note: {text}")));
        }
    }

    fn exporting(&self, written: &str) {
        if self.detail < Detail::Terminal || !std::io::stderr().is_terminal() {
            return;
        }
        let mut export = self.export.borrow_mut();
        let bar = export.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} saving the trace: {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        bar.set_message(written.to_owned());
    }

    fn clear(&self) {
        if let Some(bar) = self.export.take() {
            bar.finish_and_clear();
        }
    }
}

fn first_line(detail: Detail) -> Duration {
    FIRST_LINE[usize::from(detail == Detail::Log)]
}

/// The estimate of the time for further iterations, which is left out below two seconds.
fn rest(of_one: Duration, count: u32) -> String {
    let seconds = (of_one * count).as_secs_f64();
    if seconds < 2.0 { String::new() } else { format!("; about {seconds:.0} s more") }
}

/// A number of parameters (`124.4 M`).
fn millions(count: u64) -> String {
    match count {
        0..1_000_000 => count.to_string(),
        1_000_000..1_000_000_000 => format!("{:.1} M", count as f64 / 1e6),
        _ => format!("{:.1} B", count as f64 / 1e9),
    }
}

/// The note about what the script wrote.
pub(crate) fn kept_out(kept: &Kept) -> String {
    let files = |count: u64| if count == 1 { "file" } else { "files" };
    let mut done = Vec::new();
    if kept.written > 0 {
        let checkpoints = match kept.checkpoints {
            0 => String::new(),
            1 => ", 1 checkpoint".to_owned(),
            many => format!(", {many} checkpoints"),
        };
        let (written, size) = (kept.written, kept.size);
        done.push(format!(
            "{written} {} that the script wrote ({size}{checkpoints})",
            files(written)
        ));
    }
    if kept.removed > 0 {
        done.push(format!("{} that the script removed or renamed", kept.removed));
    }
    format!("kept out of your files: {}; --let-write PATH lets it write there", done.join(", "))
}

/// The note about processes that are left running.
fn still_running(processes: &[(u32, String)], count: usize) -> String {
    let named: Vec<String> =
        processes.iter().map(|(process, name)| format!("{process} ({name})")).collect();
    let more = match count - processes.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "the command has ended, but processes that it started are still running: {}{more}; xmem leaves them \
         running, `kill` ends them",
        named.join(", ")
    )
}

impl Drop for RecordingProgress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(doing: Doing, detail: Detail) -> Stage {
        let due = first_line(detail);
        Stage { doing, since: Instant::now(), due, engine: Engine::Cpu, is_advised: false }
    }

    fn seconds_of_lines(mut stage: Stage) -> Vec<u64> {
        (0..200).filter(|&at| stage.is_due(Duration::from_secs(at))).collect()
    }

    #[test]
    fn a_long_stage_is_not_silent_and_a_log_has_few_lines() {
        let terminal = stage(Doing::Building, Detail::Terminal);
        assert_eq!(seconds_of_lines(terminal), [5, 10, 20, 40, 80, 160]);
        assert_eq!(seconds_of_lines(stage(Doing::Building, Detail::Log)), [30, 60, 120]);
        let steps = NonZeroU32::new(3).expect("three");
        assert_eq!(Doing::Iteration(1).text(steps), "step 1 of 3");
        assert_eq!(Doing::Iteration(4).text(steps), "step 3 of 3");
    }

    #[test]
    fn the_virtual_gpu_is_named_once_where_the_cpu_computes_for_long() {
        let [short, long] = [Duration::from_secs(59), LONG];
        let mut computes = stage(Doing::Iteration(1), Detail::Log);
        let advised = [short, long, long * 2].map(|lasts| computes.takes_advice(lasts));
        assert_eq!(advised, [false, true, false]);
        assert!(!stage(Doing::Importing, Detail::Log).takes_advice(long));
        let mut on_virtual_gpu = stage(Doing::Iteration(1), Detail::Log);
        on_virtual_gpu.engine = Engine::VirtualGpu;
        assert!(!on_virtual_gpu.takes_advice(long));
    }

    #[test]
    fn the_rest_is_estimated_from_the_last_iteration() {
        assert_eq!(rest(Duration::from_secs(40), 2), "; about 80 s more");
        assert_eq!(rest(Duration::from_secs(40), 0), "");
        assert_eq!(rest(Duration::from_millis(300), 2), "");
        assert_eq!([999, 124_439_808, 7_000_000_000].map(millions), ["999", "124.4 M", "7.0 B"]);
    }
}
