//! Signals to this process: while commands are recorded, they request their end and do not end xmem.

use nix::sys::signal::Signal;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

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

/// Takes a signal; false if it is of no use any more.
type Receiver = Box<dyn Fn(Received) -> bool + Send>;

/// Those who want signals; none before the first wants them.
static RECEIVERS: Mutex<Option<Vec<Receiver>>> = Mutex::new(None);

/// Forwards signals while the receiver exists. While none does, they have their default effect.
pub(crate) fn forward<E: From<Received> + Send + 'static>(
    to: mpsc::Sender<E>,
) -> io::Result<Arrived> {
    let arrived = Arrived::default();
    for number in handled() {
        signal_hook::flag::register(number, Arc::clone(&arrived))?;
    }
    receive(Box::new(move |received| to.send(received.into()).is_ok()))?;
    Ok(arrived)
}

/// Whether the user asked this process to end, for a program that makes several recordings: a signal ends the one under way,
/// and without this, between two of them, the program.
#[derive(Debug)]
pub struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    /// Notes the first signal from now on, as long as it exists. A second one has its usual effect.
    ///
    /// # Errors
    /// If signals cannot be handled.
    pub fn watch() -> io::Result<Self> {
        let arrived = Arc::<AtomicBool>::default();
        let noted = Arc::downgrade(&arrived);
        receive(Box::new(move |_| {
            noted.upgrade().is_some_and(|noted| !noted.swap(true, Ordering::Relaxed))
        }))?;
        Ok(Self(arrived))
    }

    /// Returns whether a signal has arrived.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn handled() -> Vec<i32> {
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let wanted = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].map(|signal| signal as i32);
    wanted.into_iter().filter(|number| ignored & (1 << (number - 1)) == 0).collect()
}

/// Adds a receiver, and the thread that serves them all.
fn receive(receiver: Receiver) -> io::Result<()> {
    let mut receivers = RECEIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(receivers) = &mut *receivers {
        receivers.push(receiver);
        return Ok(());
    }
    let mut signals = SignalsInfo::<WithOrigin>::new(handled())?;
    *receivers = Some(vec![receiver]);
    std::thread::spawn(move || {
        for Origin { signal: number, cause, .. } in signals.forever() {
            let Ok(signal) = Signal::try_from(number) else { continue };
            // Where the system does not say, as on macOS, it is taken for the usual Ctrl-C.
            let is_sent = matches!(cause, Cause::Sent(_));
            let sender = if is_sent { Sender::Process } else { Sender::Terminal };
            if !is_taken(Received { signal, sender }) {
                // The default effect ends this process; an error leaves nothing to do.
                let _ = signal_hook::low_level::emulate_default_handler(number);
            }
        }
    });
    Ok(())
}

/// Gives a signal to all receivers; false if there is none.
fn is_taken(received: Received) -> bool {
    let mut receivers = RECEIVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(receivers) = &mut *receivers else { return false };
    receivers.retain(|receiver| receiver(received));
    !receivers.is_empty()
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
