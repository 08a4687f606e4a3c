//! Connections whose client has not shown who it is: those in a handshake, and those without the certificate for
//! which clients are asked. There are at most so many, and a new one ends the oldest: a client that is quick is
//! served, however many others do nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// All such connections.
#[derive(Debug)]
pub(crate) struct Unverified {
    most: usize,
    open: Mutex<VecDeque<Arc<Notify>>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    unverified: Arc<Unverified>,
    end: Arc<Notify>,
}

impl Unverified {
    /// At most `most` connections.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default() }
    }

    /// Adds a connection, which may end the oldest.
    pub(crate) fn enter(self: &Arc<Self>) -> Entry {
        let end = Arc::new(Notify::new());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_back(Arc::clone(&end));
        if open.len() > self.most
            && let Some(oldest) = open.pop_front()
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
        open.retain(|other| !Arc::ptr_eq(other, &self.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_new_connection_ends_the_oldest_and_no_other() {
        let unverified = Arc::new(Unverified::new(2));
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
}
