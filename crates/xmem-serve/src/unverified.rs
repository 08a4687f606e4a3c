//! Connections whose client has not shown who it is: those in a handshake, and those without the certificate for
//! which clients are asked. There are at most so many, and a new one ends the oldest, which has had some time: a client
//! that is quick is served, however many others do nothing, and however fast they come back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The time between two looks whether there is a place.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// All such connections.
#[derive(Debug)]
pub(crate) struct Unverified {
    most: usize,
    /// The time that each has at least.
    time: Duration,
    open: Mutex<VecDeque<(Instant, Arc<Notify>)>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    unverified: Arc<Unverified>,
    end: Arc<Notify>,
}

impl Unverified {
    /// At most `most` connections, each of which has `time` at least.
    pub(crate) fn new(most: usize, time: Duration) -> Self {
        Self { most, time, open: Mutex::default() }
    }

    /// Returns when there is a place, or the oldest connection has had its time. Others wait in the backlog of the
    /// listener until then, each for its turn.
    pub(crate) async fn place(&self) {
        while !self.has_place() {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    fn has_place(&self) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.len() < self.most || open.front().is_none_or(|(since, _)| since.elapsed() >= self.time)
    }

    /// Adds a connection, which may end the oldest.
    pub(crate) fn enter(self: &Arc<Self>) -> Entry {
        let end = Arc::new(Notify::new());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_back((Instant::now(), Arc::clone(&end)));
        if open.len() > self.most
            && let Some((_, oldest)) = open.pop_front()
        {
            // It is kept for one who waits later.
            oldest.notify_one();
        }
        drop(open);
        Entry { unverified: Arc::clone(self), end }
    }
}

impl Entry {
    /// Returns when a newer connection took the place of this one.
    pub(crate) async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut open = self.unverified.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, other)| !Arc::ptr_eq(other, &self.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_new_connection_ends_the_oldest_and_no_other() {
        let unverified = Arc::new(Unverified::new(2, Duration::ZERO));
        let is_ended = async |entry: &Entry| {
            tokio::time::timeout(Duration::from_millis(10), entry.ended()).await.is_ok()
        };
        let (first, second) = (unverified.enter(), unverified.enter());
        assert!(!is_ended(&first).await);
        let third = unverified.enter();
        assert!(is_ended(&first).await && !is_ended(&second).await);
        drop(second);
        let fourth = unverified.enter();
        assert!(!is_ended(&third).await);
        drop(first);
        assert_eq!(unverified.open.lock().expect("no panic").len(), 2);
        drop((third, fourth));
        assert!(unverified.open.lock().expect("no panic").is_empty());
    }

    #[tokio::test]
    async fn connections_that_came_back_at_once_ended_all_handshakes() {
        let unverified = Arc::new(Unverified::new(2, Duration::from_secs(3600)));
        let wait = async || {
            tokio::time::timeout(Duration::from_millis(20), unverified.place()).await.is_ok()
        };
        assert!(wait().await);
        let (first, second) = (unverified.enter(), unverified.enter());
        // Neither has had its time.
        assert!(!wait().await);
        drop(first);
        assert!(wait().await);
        drop(second);
        let unverified = Arc::new(Unverified::new(1, Duration::from_millis(1)));
        let _first = unverified.enter();
        unverified.place().await;
    }
}
