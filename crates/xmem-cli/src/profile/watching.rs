//! What the user sees while a command is recorded: notes, and on a terminal where the recording is.
//!
//! The script writes to the same terminal. A bar that is drawn again and again would wipe out what it
//! has written, prompts above all, so there is a line for each iteration, and a bar only while
//! PyTorch exports, when the script stands still.

use super::say;
use crate::args::Verbosity;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};
use xmem_recorder::Progress;

/// Shows what happens.
pub(super) struct Watching {
    steps: NonZeroU32,
    started: Instant,
    audience: Audience,
    last: RefCell<String>,
    export: RefCell<Option<ProgressBar>>,
}

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Audience {
    /// Nobody wants to know.
    Quiet,
    /// A log: what matters later.
    Log,
    /// Somebody in front of a terminal.
    Terminal,
    /// Somebody who asked for more.
    Curious,
}

impl Watching {
    /// For a recording of so many iterations.
    pub(super) fn new(steps: NonZeroU32, verbosity: Verbosity) -> Self {
        let audience = match verbosity {
            Verbosity::Quiet => Audience::Quiet,
            Verbosity::Normal if std::io::stderr().is_terminal() => Audience::Terminal,
            Verbosity::Normal => Audience::Log,
            Verbosity::Stages | Verbosity::Everything => Audience::Curious,
        };
        Self {
            steps,
            started: Instant::now(),
            audience,
            last: RefCell::default(),
            export: RefCell::default(),
        }
    }

    /// Something happened.
    pub(super) fn hear(&self, news: Progress<'_>) {
        match news {
            Progress::Python { version } => {
                self.tell(Audience::Curious, format!("Python {version} runs"));
            }
            Progress::Torch { version } => self.tell(
                Audience::Terminal,
                format!("torch {version}: CUDA is redirected to the CPU"),
            ),
            Progress::Recording => self.tell(Audience::Terminal, "recording".to_owned()),
            Progress::Iteration { number, of, took, resident } => {
                let since = self.started.elapsed().as_secs_f64();
                let took = took.as_secs_f64();
                let steps = self.steps;
                self.tell(
                    Audience::Terminal,
                    format!("{of}: {number}/{steps} ({took:.1} s; {since:.0} s in all, {resident})"),
                );
            }
            Progress::Exporting { written } => self.exporting(&written.to_string()),
            Progress::Exported => self.clear(),
            Progress::Note(text) => self.note(text),
            Progress::NoHookYet { since } => self.note(&format!(
                "in {} s no Python with xmem's hook has started; a Python that runs with -I, -E or -S, \
                 or in an environment that the command clears, is not recorded",
                since.as_secs()
            )),
            Progress::TimeIsOver => self.note("the time is over: saving what there is"),
            Progress::MemoryIsShort => self.note("memory is running out: saving what there is"),
            Progress::Interrupted => {
                self.note("interrupted: saving what there is; once more ends everything at once");
            }
            Progress::EndingTheCommand => {
                self.note("the recording is saved, but the command did not end: ending it");
            }
        }
    }

    /// For those who look on. What each of several processes says is told once.
    fn tell(&self, to: Audience, text: String) {
        if self.audience >= to && *self.last.borrow() != text {
            say(&format!("xmem: {text}"));
            self.last.replace(text);
        }
    }

    /// For everyone who does not want silence.
    fn note(&self, text: &str) {
        if self.audience >= Audience::Log {
            say(&format!("note: {text}"));
        }
    }

    fn exporting(&self, written: &str) {
        if self.audience < Audience::Terminal || !std::io::stderr().is_terminal() {
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

impl Drop for Watching {
    fn drop(&mut self) {
        self.clear();
    }
}
