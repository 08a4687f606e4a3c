//! Waiting for a key, or for the end of the terminal.
//!
//! crossterm does not return from reading a terminal that is gone (a connection that was lost): it reads its end again and
//! again. It is asked for events only where there is a terminal.

use crossterm::event;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

/// What has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// A key, or another size.
    Event,
    /// Nothing, or a signal.
    Nothing,
    /// The end of the terminal.
    HangUp,
}

/// Waits for what comes next, for this time at most.
pub(crate) fn wait(longest: Duration) -> io::Result<Arrival> {
    if is_gone(Duration::ZERO)? {
        return Ok(Arrival::HangUp);
    }
    if event::poll(Duration::ZERO)? {
        return Ok(Arrival::Event);
    }
    if is_gone(longest)? { Ok(Arrival::HangUp) } else { Ok(Arrival::Nothing) }
}

/// Waits until a terminal can be read, a signal comes, or the time is over. Returns whether a terminal is gone.
fn is_gone(longest: Duration) -> io::Result<bool> {
    let (input, output) = (io::stdin(), io::stdout());
    let mut terminals = vec![PollFd::new(output.as_fd(), PollFlags::POLLIN)];
    if input.is_terminal() {
        terminals.push(PollFd::new(input.as_fd(), PollFlags::POLLIN));
    }
    let timeout = PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX);
    match poll(&mut terminals, timeout) {
        Ok(_) => {}
        Err(Errno::EINTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    let found = terminals.iter().filter_map(PollFd::revents);
    Ok(found.into_iter().any(|flags| flags.intersects(gone)))
}
