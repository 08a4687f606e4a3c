//! When to stop before all is done: a signal, or nobody is there to read any more.

use crate::args::Verbosity;
use crate::exit::Exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asked before a trace is begun.
#[derive(Default)]
pub(super) struct Stop {
    interrupted: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
    pointless: AtomicBool,
}

impl Stop {
    /// Heeds SIGINT and SIGTERM from here on: the first is a wish to stop, the second ends the process
    /// at once.
    pub(super) fn on_signals(verbosity: Verbosity) -> Self {
        let stop = Self::default();
        if let Err(error) = stop.listen(verbosity) {
            tracing::warn!(%error, "signals end the process at once");
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
            let mut signals = Signals::new([SIGINT, SIGTERM])?;
            std::thread::spawn(move || {
                if signals.forever().next().is_some() {
                    // Nothing can be done when standard error itself is closed.
                    let _ = writeln!(
                        io::stderr(),
                        "note: the traces at work are finished, no other is begun; once more ends \
                         it at once"
                    );
                }
            });
        }
        Ok(())
    }

    /// There is no point in any further answer.
    pub(super) fn at_once(&self) {
        self.pointless.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_at_once(&self) -> bool {
        self.pointless.load(Ordering::Relaxed)
    }

    /// Whether no other trace is to be begun.
    pub(super) fn is_wished(&self) -> bool {
        self.is_at_once() || self.signalled().is_some()
    }

    /// What a signal makes of the exit code.
    pub(super) fn signalled(&self) -> Option<Exit> {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        match (is(&self.interrupted), is(&self.terminated)) {
            (true, _) => Some(Exit::Interrupted),
            (false, true) => Some(Exit::Terminated),
            (false, false) => None,
        }
    }
}
