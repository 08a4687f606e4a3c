//! The end of a worker with its parent.
//!
//! A worker ends with its standard input, but not while it waits for the library. So a thread looks
//! whether the parent is there, and ends the worker, and what the library may have started, if it is not.

use std::os::unix::process::parent_id;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// The time between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// The id of the process that has started this one as a worker, from that variable.
pub(crate) fn of_worker(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Ends this process soon after `parent` has ended, or the process that is its parent now.
pub(crate) fn end_with(parent: Option<u32>) {
    let parent = parent.unwrap_or_else(parent_id);
    let running = Arc::new(Barrier::new(2));
    let started = Arc::clone(&running);
    let watch = move || {
        started.wait();
        while parent_id() == parent {
            thread::sleep(INTERVAL);
        }
        end();
    };
    // Without the thread, the worker still ends with its standard input.
    match thread::Builder::new().spawn(watch) {
        // A thread that starts takes a lock of the loader, which is held while the library is loaded
        // (glibc, `__cxa_thread_atexit_impl`).
        Ok(_) => drop(running.wait()),
        Err(error) => tracing::debug!(%error, "cannot watch the parent"),
    }
}

/// Ends this process at once: no code of the library is run, which may be what hangs.
fn end() {
    use nix::sys::signal::{Signal, kill, killpg};
    use nix::unistd::{Pid, getpgrp};
    if getpgrp() == Pid::this() {
        let _ = killpg(Pid::this(), Signal::SIGKILL);
    }
    let _ = kill(Pid::this(), Signal::SIGKILL);
}
