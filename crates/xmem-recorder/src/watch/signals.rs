//! Signals to this process: they are wishes to end, and no longer deadly while a command is recorded.

use super::News;
use nix::sys::signal::Signal;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::mpsc::Sender;

/// Sends them on, as long as somebody listens. Afterwards, they do what they did before.
pub(super) fn forward(to: Sender<News>) -> io::Result<()> {
    let wanted = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    let mut signals = Signals::new(wanted.map(|signal| signal as i32))?;
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
