//! Waiting for a key, or for the end of the terminal.
//!
//! crossterm does not return from reading a terminal that is gone (a connection that was lost): it reads its end again
//! and again. It is asked for events only where there is a terminal, and in a thread of its own: the terminal may go
//! between the question and the reading.

use crate::hang_up::is_gone;
use crossterm::event::{self, Event};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// What has come.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// A key, or another size.
    Event(Event),
    /// Nothing, or a signal.
    Nothing,
    /// The end of the terminal.
    HangUp,
}

/// The events of the terminal, until it is dropped.
pub(crate) struct Events {
    arrivals: Receiver<io::Result<Event>>,
    is_over: Arc<AtomicBool>,
}

impl Events {
    /// Reads the terminal in a thread, which looks at its end each time that `pause` is over.
    pub(crate) fn start(pause: Duration) -> io::Result<Self> {
        // At most one event is read ahead, so that keys that are typed after the session stay in the terminal.
        let (sender, arrivals) = sync_channel(0);
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let name = "terminal".to_owned();
        thread::Builder::new().name(name).spawn(move || read(&sender, &seen, pause))?;
        Ok(Self { arrivals, is_over })
    }

    /// Waits for what comes next, for this time at most.
    pub(crate) fn wait(&self, longest: Duration) -> io::Result<Arrival> {
        match self.arrivals.recv_timeout(longest) {
            Ok(event) => event.map(Arrival::Event),
            Err(RecvTimeoutError::Timeout) if !is_gone(Duration::ZERO)? => Ok(Arrival::Nothing),
            Err(_) => Ok(Arrival::HangUp),
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // The thread sees it and ends. Only one that is held by a terminal that is gone ends with the process.
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// Sends events until nobody receives them any more, or the terminal is gone or cannot be read.
fn read(sender: &SyncSender<io::Result<Event>>, is_over: &AtomicBool, pause: Duration) {
    while !is_over.load(Ordering::SeqCst) {
        let is_last = match next(pause) {
            Ok(None) => false,
            Ok(Some(event)) => sender.send(Ok(event)).is_err(),
            Err(error) => {
                // Whoever waited has gone, or gets it.
                let _ = sender.send(Err(error));
                true
            }
        };
        if is_last || is_gone(Duration::ZERO).unwrap_or(true) {
            return;
        }
    }
}

/// The next event; none if no event comes within `pause`. Events that crossterm has already read come first.
fn next(pause: Duration) -> io::Result<Option<Event>> {
    if event::poll(Duration::ZERO)? {
        return event::read().map(Some);
    }
    is_gone(pause).map(|_| None)
}
