//! A progress bar on standard error: only on a terminal, and only for work that takes a while.

use crate::global::Verbosity;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use xmem::types::printable;
use xmem::{Bytes, Stage};

/// The size of uncompressed input below which an answer comes before a bar could be read.
const MIN_SIZE_FOR_BAR: Bytes = Bytes::mib(256);

/// The approximate compression ratio of a trace.
const COMPRESSION_RATIO: u64 = 12;

/// A bar with the number of finished and failed traces and the current stage, or nothing.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    failed: AtomicU64,
}

impl Progress {
    /// A bar over `traces`, if they are much work and standard error is a terminal.
    pub(crate) fn over<'a>(
        traces: impl IntoIterator<Item = &'a Path>,
        verbosity: Verbosity,
    ) -> Self {
        let failed = AtomicU64::new(0);
        let on_terminal = verbosity == Verbosity::Normal && std::io::stderr().is_terminal();
        if !on_terminal {
            return Self { bar: None, failed };
        }
        let (count, work) = work(traces);
        if work < MIN_SIZE_FOR_BAR {
            return Self { bar: None, failed };
        }
        Self { bar: Some(bar(count)), failed }
    }

    /// A bar over steps of which each may take a while.
    pub(crate) fn of_steps(count: usize, what: &str, verbosity: Verbosity) -> Self {
        let failed = AtomicU64::new(0);
        if verbosity != Verbosity::Normal || !std::io::stderr().is_terminal() {
            return Self { bar: None, failed };
        }
        let bar = bar(count as u64);
        bar.set_message(what.to_owned());
        Self { bar: Some(bar), failed }
    }

    /// Shows that a stage of `trace` begins.
    pub(crate) fn stage(&self, trace: &str, stage: Stage) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {}", stage.name(), printable(trace)));
        }
    }

    /// Counts a finished trace.
    pub(crate) fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Counts a failed trace.
    pub(crate) fn failed(&self) {
        let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!(", {failed} failed"));
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Runs `write`, which may print to the terminal, while the bar is hidden.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A bar on standard error.
fn bar(count: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {pos}/{len}{prefix} {msg} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// The number of inputs and their uncompressed size, estimated from file sizes and names. Standard
/// input and unreadable files count as large.
fn work<'a>(traces: impl IntoIterator<Item = &'a Path>) -> (u64, Bytes) {
    let text = |path: &Path| {
        let size = std::fs::metadata(path).map_or(MIN_SIZE_FOR_BAR.get(), |m| m.len());
        let plain = path.extension().is_some_and(|e| e == "json");
        if plain { size } else { size.saturating_mul(COMPRESSION_RATIO) }
    };
    let sum = |(count, all): (u64, u64), path| (count + 1, all.saturating_add(text(path)));
    let (count, all) = traces.into_iter().fold((0, 0), sum);
    (count, Bytes(all))
}
