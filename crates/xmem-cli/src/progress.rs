//! Progress on standard error: only on a terminal, and only for work that takes a while.

use crate::args::Verbosity;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use xmem::{Bytes, Stage};

/// Below this many bytes of text there is an answer before a bar could be read.
const WORTH_A_BAR: Bytes = Bytes::mib(256);

/// How much longer a trace is than its compressed form, roughly.
const COMPRESSION: u64 = 12;

/// Shows how many traces are done, how many of them are bad, and what is at which stage; or nothing.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    bad: AtomicU64,
}

impl Progress {
    /// A bar over `traces`, if they are much work and someone is watching.
    pub(crate) fn over<'a>(
        traces: impl IntoIterator<Item = &'a Path>,
        verbosity: Verbosity,
    ) -> Self {
        let bad = AtomicU64::new(0);
        let watched = verbosity == Verbosity::Normal && std::io::stderr().is_terminal();
        if !watched {
            return Self { bar: None, bad };
        }
        let (count, work) = work(traces);
        if work < WORTH_A_BAR {
            return Self { bar: None, bad };
        }
        let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {pos}/{len}{prefix} {msg} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar: Some(bar), bad }
    }

    /// A stage of `trace` begins.
    pub(crate) fn stage(&self, trace: &str, stage: Stage) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {trace}", stage.name()));
        }
    }

    /// A trace is done.
    pub(crate) fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// There is no answer about a trace.
    pub(crate) fn bad(&self) {
        let bad = self.bad.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!(", {bad} bad"));
        }
    }

    /// There is no more to show.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Does what may write to the terminal that the bar is on.
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

/// How many inputs, and bytes of text in all of them, by their sizes and names; standard input and
/// what cannot be seen count as much work.
fn work<'a>(traces: impl IntoIterator<Item = &'a Path>) -> (u64, Bytes) {
    let text = |path: &Path| {
        let size = std::fs::metadata(path).map_or(WORTH_A_BAR.get(), |m| m.len());
        let plain = path.extension().is_some_and(|e| e == "json");
        if plain { size } else { size.saturating_mul(COMPRESSION) }
    };
    let sum = |(count, all): (u64, u64), path| (count + 1, all.saturating_add(text(path)));
    let (count, all) = traces.into_iter().fold((0, 0), sum);
    (count, Bytes(all))
}
