//! Where a console does not go before its programs.

use crossterm::event;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::time::Duration;

pub(crate) const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

pub(crate) const HANG_UP: i32 = SIGTERM;

/// Waits for an event, or until the time is over.
pub(crate) fn is_gone(longest: Duration) -> io::Result<bool> {
    if !longest.is_zero() {
        event::poll(longest)?;
    }
    Ok(false)
}
