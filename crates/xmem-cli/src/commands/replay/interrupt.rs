//! The request to stop early: by a signal, or because the output cannot be written any more.

use crate::exit::Exit;
use crate::global::Verbosity;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop, checked before each trace.
#[derive(Default)]
pub(super) struct Interrupt {
    interrupted: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
    immediate: AtomicBool,
}

impl Interrupt {
    /// Handles SIGINT and SIGTERM from here on: the first one requests a stop, the second one ends
    /// the process immediately.
    pub(super) fn on_signals(verbosity: Verbosity) -> Self {
        let stop = Self::default();
        if let Err(error) = stop.listen(verbosity) {
            tracing::warn!(%error, "cannot handle signals: they end the process immediately");
        }
        stop
    }

    fn listen(&self, verbosity: Verbosity) -> io::Result<()> {
        let any = Arc::new(AtomicBool::new(false));
        for (signal, own, exit) in [
            (SIGINT, &self.interrupted, Exit::Interrupted),
            (SIGTERM, &self.terminated, Exit::Terminated),
        ] {
            // In this order: the first signal finds the flag unset, and sets it.
            flag::register_conditional_shutdown(signal, exit.code().into(), Arc::clone(&any))?;
            flag::register(signal, Arc::clone(&any))?;
            flag::register(signal, Arc::clone(own))?;
        }
        if verbosity != Verbosity::Quiet {
            say_when_interrupted()?;
        }
        Ok(())
    }

    /// Requests to stop without finishing the trace in progress: no further answer can be written.
    pub(super) fn now(&self) {
        self.immediate.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_immediate(&self) -> bool {
        self.immediate.load(Ordering::Relaxed)
    }

    /// Returns whether no other trace should be started.
    pub(super) fn is_requested(&self) -> bool {
        self.is_immediate() || self.signalled().is_some()
    }

    /// The exit code for the received signal.
    pub(super) fn signalled(&self) -> Option<Exit> {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        match (is(&self.interrupted), is(&self.terminated)) {
            (true, _) => Some(Exit::Interrupted),
            (false, true) => Some(Exit::Terminated),
            (false, false) => None,
        }
    }
}

/// Says what the first signal does.
#[cfg(unix)]
fn say_when_interrupted() -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let note = move || {
        if signals.forever().next().is_some() {
            crate::terminal::say(
                "note: interrupted: finishing the traces in progress; interrupt again to stop \
                 immediately",
            );
        }
    };
    std::thread::Builder::new().spawn(note).map(drop)
}
#[cfg(not(unix))]
fn say_when_interrupted() -> io::Result<()> {
    Ok(())
}
