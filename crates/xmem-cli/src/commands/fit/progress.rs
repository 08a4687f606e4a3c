//! Messages while variants are recorded: what is under way, what came of it, and how long the rest takes.

use crate::global::Verbosity;
use crate::terminal::say;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;
use xmem_studies::fit;

/// Messages about the recordings of one device.
pub(super) struct FitProgress {
    verbosity: Verbosity,
    bar: Option<ProgressBar>,
    /// Recordings that are certainly made from here on.
    to_come: usize,
    side_by_side: usize,
    made: u32,
    time: Duration,
}

/// Times of a spinner's turn each second.
const TICK: Duration = Duration::from_millis(120);

impl FitProgress {
    pub(super) fn new(verbosity: Verbosity, side_by_side: usize) -> Self {
        Self { verbosity, bar: None, to_come: 0, side_by_side, made: 0, time: Duration::ZERO }
    }

    /// Says how many recordings are certainly made from here on.
    pub(super) fn expect(&mut self, count: usize) {
        self.to_come = count;
    }

    /// Says which recordings are under way.
    pub(super) fn begin(&mut self, variants: &[String]) {
        if self.verbosity == Verbosity::Quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} recording {msg} ({elapsed})");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(variants.join(" and "));
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
    }

    /// Says what came of a recording.
    pub(super) fn made(&mut self, variant: &str, result: &fit::Recorded, took: Duration) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.made += 1;
        self.time += took;
        self.to_come = self.to_come.saturating_sub(1);
        if self.verbosity == Verbosity::Quiet {
            return;
        }
        let result = match result {
            Ok(figures) if figures.fits => format!("needs {}, fits", figures.needs),
            Ok(figures) => format!("needs {}, does not fit", figures.needs),
            Err(reason) => reason.clone(),
        };
        say(&format!("{variant}: {result} ({:.1} s{})", took.as_secs_f64(), self.rest()));
    }

    /// Says whether a variant ran in the memory of the device.
    pub(super) fn ran(&mut self, what: &str, runs: bool, took: Duration) {
        let runs = if runs { "runs" } else { "does not run" };
        self.say(&format!("{what}: {runs} ({:.1} s)", took.as_secs_f64()));
    }

    /// Says what came of less memory than what is suggested needs.
    pub(super) fn proven(&mut self, fails: bool) {
        let fails = if fails { "runs out of memory" } else { "runs, too" };
        self.say(&format!("what is suggested, with less than it needs: {fails}"));
    }

    fn say(&mut self, line: &str) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.verbosity != Verbosity::Quiet {
            say(line);
        }
    }

    /// The time of the recordings that are certainly made, from the mean of those before.
    fn rest(&self) -> String {
        let rounds = self.to_come.div_ceil(self.side_by_side.max(1)) as u32;
        match rounds {
            0 | 1 => String::new(),
            _ => format!(", about {:.0} s left", (self.time / self.made * rounds).as_secs_f64()),
        }
    }
}
