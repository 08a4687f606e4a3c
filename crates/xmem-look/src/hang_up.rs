//! The end of a terminal: a connection that was lost.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::time::Duration;

/// The signals that end a session.
pub(crate) const SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// The signal that says that a terminal is gone.
pub(crate) const HANG_UP: i32 = SIGHUP;

/// Waits until a terminal can be read, a signal comes, or the time is over. Returns whether a terminal is gone.
pub(crate) fn is_gone(longest: Duration) -> io::Result<bool> {
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
