//! Signals to this process: while a command is recorded, they request its end and do not end xmem.

use nix::sys::signal::Signal;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

/// True once a signal has arrived, which [`forward`] may not have sent yet.
pub(crate) type Arrived = Arc<AtomicBool>;

/// A signal to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) signal: Signal,
    pub(crate) sender: Sender,
}

/// The sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A terminal, which sends Ctrl-C to all processes of its foreground job.
    Terminal,
    /// A process, which may have meant this one alone.
    Process,
}

/// Forwards signals while the receiver exists. Afterwards they have their default effect.
pub(crate) fn forward<E: From<Received> + Send + 'static>(
    to: mpsc::Sender<E>,
) -> io::Result<Arrived> {
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let wanted = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].map(|signal| signal as i32);
    let handled = wanted.into_iter().filter(|number| ignored & (1 << (number - 1)) == 0);
    let arrived = Arrived::default();
    let handled: Vec<i32> = handled.collect();
    for number in &handled {
        signal_hook::flag::register(*number, Arc::clone(&arrived))?;
    }
    let mut signals = SignalsInfo::<WithOrigin>::new(handled)?;
    std::thread::spawn(move || {
        for Origin { signal: number, cause, .. } in signals.forever() {
            let Ok(signal) = Signal::try_from(number) else { continue };
            // Where the system does not say, as on macOS, it is taken for the usual Ctrl-C.
            let is_sent = matches!(cause, Cause::Sent(_));
            let sender = if is_sent { Sender::Process } else { Sender::Terminal };
            if to.send(Received { signal, sender }.into()).is_err() {
                // The default effect ends this process; an error leaves nothing to do.
                let _ = signal_hook::low_level::emulate_default_handler(number);
            }
        }
    });
    Ok(arrived)
}

/// The signals that this process was started to ignore (`nohup`), as a mask: proc(5),
/// `/proc/pid/status`, `SigIgn`. Zero where the platform does not report it.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::ignored;

    #[test]
    fn ignored_signals_are_bits() {
        let rows = [("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0f\n", 0x1001), ("", 0)];
        for (status, mask) in rows {
            assert_eq!(ignored(status), mask, "{status}");
        }
    }
}
