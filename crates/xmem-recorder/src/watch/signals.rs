//! Signals to this process: they are wishes to end, and no longer deadly while a command is recorded.

use super::News;
use nix::sys::signal::Signal;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::mpsc::Sender;

/// Sends them on, as long as somebody listens. Afterwards, they do what they did before.
pub(super) fn forward(to: Sender<News>) -> io::Result<()> {
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let wanted = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].map(|signal| signal as i32);
    let heeded = wanted.into_iter().filter(|number| ignored & (1 << (number - 1)) == 0);
    let mut signals = Signals::new(heeded)?;
    std::thread::spawn(move || {
        for number in signals.forever() {
            let Ok(signal) = Signal::try_from(number) else { continue };
            if to.send(News::Signal(signal)).is_err() {
                // It ends this process, so there is nothing to do with an error.
                let _ = signal_hook::low_level::emulate_default_handler(number);
            }
        }
    });
    Ok(())
}

/// The signals that this process was started to ignore (`nohup`), as a mask: proc(5),
/// `/proc/pid/status`, `SigIgn`. None where the platform does not tell.
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
