//! Signals to this process: while a command is recorded, they request its end and do not end xmem.

use nix::sys::signal::Signal;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

/// True once a signal has arrived, which [`forward`] may not have sent yet.
pub(crate) type Arrived = Arc<AtomicBool>;

/// Forwards signals while the receiver exists. Afterwards they have their default effect.
pub(crate) fn forward<E: From<Signal> + Send + 'static>(to: Sender<E>) -> io::Result<Arrived> {
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let wanted = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].map(|signal| signal as i32);
    let handled = wanted.into_iter().filter(|number| ignored & (1 << (number - 1)) == 0);
    let arrived = Arrived::default();
    let handled: Vec<i32> = handled.collect();
    for number in &handled {
        signal_hook::flag::register(*number, Arc::clone(&arrived))?;
    }
    let mut signals = Signals::new(handled)?;
    std::thread::spawn(move || {
        for number in signals.forever() {
            let Ok(signal) = Signal::try_from(number) else { continue };
            if to.send(signal.into()).is_err() {
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
