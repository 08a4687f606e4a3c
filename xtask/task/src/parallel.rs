//! Work on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does all work on so many threads; results in the order of the work.
pub fn map<W: Sync, R: Send>(work: &[W], threads: usize, task: impl Fn(&W) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(work.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(work) = work.get(place) else { return };
                    let result = task(work);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn results_are_in_the_order_of_the_work() {
        // The first takes longest.
        let slow_first = |&number: &u64| {
            std::thread::sleep(Duration::from_millis(20 / (number + 1)));
            number * number
        };
        let work: Vec<u64> = (0..9).collect();
        assert_eq!(map(&work, 3, slow_first), [0, 1, 4, 9, 16, 25, 36, 49, 64]);
        assert_eq!(map(&work, 1, |number| *number), work);
    }
}
