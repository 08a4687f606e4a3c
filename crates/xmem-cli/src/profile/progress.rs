//! Messages while a command is recorded: notes, and on a terminal the progress of the recording.
//!
//! The script writes to the same terminal. A progress bar that is redrawn would overwrite its
//! output, prompts above all; so each iteration prints a line, and a bar appears only while PyTorch
//! exports the trace and the script is paused.

use crate::args::Verbosity;
use crate::error::unshadow;
use crate::terminal::{say, shown};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};
use xmem::printable;
use xmem_recorder::{Engine, Kept, Progress};

/// Prints the progress of a recording.
pub(super) struct RecordingProgress {
    steps: NonZeroU32,
    started: Instant,
    detail: Detail,
    last: RefCell<String>,
    export: RefCell<Option<ProgressBar>>,
}

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
    pub(super) fn new(steps: NonZeroU32, verbosity: Verbosity) -> Self {
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
            export: RefCell::default(),
        }
    }

    /// Prints an event of the recording.
    pub(super) fn show(&self, news: Progress<'_>) {
        match news {
            Progress::Python { version } => {
                self.line(Detail::Verbose, format!("Python {version} started"));
            }
            Progress::Torch { version, engine } => {
                let how = match engine {
                    Engine::VirtualGpu => "on a virtual GPU",
                    Engine::Cpu | Engine::Auto => "CUDA is redirected to the CPU",
                };
                self.line(Detail::Terminal, format!("torch {version}: {how}"));
            }
            Progress::Recording => self.line(Detail::Terminal, "recording".to_owned()),
            Progress::Iteration { number, of, took, resident } => {
                let since = self.started.elapsed().as_secs_f64();
                let took = took.as_secs_f64();
                let steps = self.steps;
                self.line(
                    Detail::Terminal,
                    format!("{of}: {number}/{steps} ({took:.1} s; total {since:.0} s, {resident})"),
                );
            }
            Progress::Exporting { written } => self.exporting(&written.to_string()),
            Progress::Exported => self.clear(),
            Progress::Note(text) => self.note(text),
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

/// The note about what the script wrote.
fn kept_out(kept: &Kept) -> String {
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
