//! Progress on standard error: only on a terminal, and only for work that takes a while.

use crate::args::Verbosity;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xmem::{Bytes, Stage};

/// Below this many bytes of text there is an answer before a bar could be read.
const WORTH_A_BAR: Bytes = Bytes::mib(256);

/// How much longer a trace is than its compressed form, roughly.
const COMPRESSION: u64 = 12;

/// Shows which trace is at which stage; or nothing.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// A bar over `traces`, if they are much work and someone is watching.
    pub(crate) fn over(traces: &[PathBuf], verbosity: Verbosity) -> Self {
        let watched = verbosity == Verbosity::Normal && std::io::stderr().is_terminal();
        if !watched || work(traces) < WORTH_A_BAR {
            return Self(None);
        }
        let bar =
            ProgressBar::with_draw_target(Some(traces.len() as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {pos}/{len} {msg} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }

    /// A stage of `trace` begins.
    pub(crate) fn stage(&self, trace: &Path, stage: Stage) {
        if let Some(bar) = &self.0 {
            bar.set_message(format!("{} {}", stage.name(), trace.display()));
        }
    }

    /// A trace is done.
    pub(crate) fn advance(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Bytes of text in all inputs, by their sizes and names; standard input and what cannot be seen
/// count as much work.
fn work(traces: &[PathBuf]) -> Bytes {
    let text = |path: &PathBuf| {
        let size = std::fs::metadata(path).map_or(WORTH_A_BAR.get(), |m| m.len());
        let plain = path.extension().is_some_and(|e| e == "json");
        if plain { size } else { size.saturating_mul(COMPRESSION) }
    };
    Bytes(traces.iter().map(text).fold(0, u64::saturating_add))
}
