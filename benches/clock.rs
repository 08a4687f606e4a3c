//! CPU time, which other load on the machine blurs less than wall time.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The time that this thread ran for `work`, and what came of it.
///
/// # Panics
/// If the system has no such clock.
pub fn cpu_time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let ran = || {
        let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
        Duration::from(clock_gettime(clock).expect("a clock of the thread"))
    };
    let before = ran();
    let result = work();
    (ran() - before, result)
}
