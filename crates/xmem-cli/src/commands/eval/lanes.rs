//! The recordings that may run side by side, whichever jobs they are of.

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// As many lanes as recordings may run at once.
#[derive(Debug)]
pub(super) struct Lanes {
    count: NonZeroUsize,
    free: Mutex<usize>,
    freed: Condvar,
}

impl Lanes {
    pub(super) fn new(count: NonZeroUsize) -> Self {
        Self { count, free: Mutex::new(count.get()), freed: Condvar::new() }
    }

    /// Waits for a free lane, and takes it while the function runs.
    pub(super) fn run<T>(&self, function: impl FnOnce() -> T) -> T {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free =
            self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        drop(free);
        let _taken = Taken(self);
        function()
    }

    /// The time that recordings take together, each begun in turn on the first lane that is free.
    pub(super) fn time_of(&self, recordings: impl IntoIterator<Item = Duration>) -> Duration {
        let mut lanes = vec![Duration::ZERO; self.count.get()];
        for took in recordings {
            if let Some(first) = lanes.iter_mut().min() {
                *first += took;
            }
        }
        lanes.into_iter().max().unwrap_or_default()
    }
}

/// A lane in use: freed when it is dropped, after a panic as well.
struct Taken<'a>(&'a Lanes);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn lanes(count: usize) -> Lanes {
        Lanes::new(NonZeroUsize::new(count).expect("not zero"))
    }

    #[test]
    fn no_more_run_at_once_than_there_are_lanes() {
        let lanes = lanes(2);
        let (running, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    lanes.run(|| {
                        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(5));
                        running.fetch_sub(1, Ordering::SeqCst);
                    });
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(done.into_inner(), 8);
        assert!(most.into_inner() <= 2);
    }

    #[test]
    fn a_lane_is_free_again_after_a_panic() {
        let lanes = lanes(1);
        let panicked = thread::scope(|scope| {
            scope.spawn(|| lanes.run(|| panic!("on purpose"))).join().is_err()
        });
        assert!(panicked);
        assert_eq!(lanes.run(|| 7), 7);
    }

    #[test]
    fn the_time_is_that_of_the_lane_that_ends_last() {
        let seconds = |times: &[u64]| times.iter().copied().map(Duration::from_secs).collect();
        let cases: [(usize, &[u64], u64); 5] = [
            (1, &[3, 4, 5], 12),
            (2, &[3, 4, 5], 8),
            (2, &[9, 4, 4], 9),
            (3, &[3, 4, 5], 5),
            (2, &[], 0),
        ];
        for (count, times, expected) in cases {
            let times: Vec<Duration> = seconds(times);
            assert_eq!(lanes(count).time_of(times), Duration::from_secs(expected));
        }
    }
}
