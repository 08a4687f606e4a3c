//! The bodies of requests, in memory that is counted by the bytes that have arrived.
//!
//! A body costs what it has sent, not what it announces. The first part of each is free, because there are only so
//! many connections: whoever sends little never waits for those who send much.

use axum::body::{Body, Bytes, HttpBody};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The part of a body that is not counted: reviews of nearly all objects are shorter.
const FREE: usize = 64 << 10;

/// The unit in which the rest is counted.
const UNIT: usize = 1 << 10;

/// The memory of all bodies together, beyond the free part of each.
pub(crate) struct BodyMemory {
    units: Semaphore,
    /// For one body that finds no memory left, so that bodies never wait for each other.
    overdraft: Semaphore,
}

/// The reason why a body was not read to its end.
pub(crate) enum BodyError {
    /// It is longer than the limit.
    TooLong,
    /// It breaks off, or is not what its head says.
    Broken(String),
}

/// A body, and the memory that is counted for it.
pub(crate) struct CountedBody<'a> {
    pub(crate) bytes: Vec<u8>,
    units: Option<SemaphorePermit<'a>>,
    overdraft: Option<SemaphorePermit<'a>>,
}

impl BodyMemory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { units: Semaphore::new(bytes / UNIT), overdraft: Semaphore::new(1) }
    }

    /// Reads a body of at most `limit` bytes. `is_waiting` is true while it waits for memory.
    pub(crate) async fn read(
        &self,
        mut body: Body,
        limit: usize,
        is_waiting: &AtomicBool,
    ) -> Result<CountedBody<'_>, BodyError> {
        let mut counted = CountedBody { bytes: Vec::new(), units: None, overdraft: None };
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|error| BodyError::Broken(error.to_string()))?;
            // Trailers say nothing here.
            let Ok(data) = frame.into_data() else { continue };
            if counted.bytes.len() + data.len() > limit {
                return Err(BodyError::TooLong);
            }
            is_waiting.store(true, Ordering::Relaxed);
            self.add(&mut counted, &data).await;
            is_waiting.store(false, Ordering::Relaxed);
        }
        Ok(counted)
    }

    async fn add<'a>(&'a self, counted: &mut CountedBody<'a>, data: &Bytes) {
        let length = counted.bytes.len() + data.len();
        let held = counted.units.as_ref().map_or(0, SemaphorePermit::num_permits);
        let more = length.saturating_sub(FREE).div_ceil(UNIT).saturating_sub(held);
        if more > 0 && counted.overdraft.is_none() {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            match (self.units.try_acquire_many(more), &mut counted.units) {
                (Ok(units), None) => counted.units = Some(units),
                (Ok(units), Some(held)) => held.merge(units),
                // The semaphores are never closed.
                (Err(_), _) => counted.overdraft = self.overdraft.acquire().await.ok(),
            }
        }
        counted.bytes.extend_from_slice(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read<'a>(memory: &'a BodyMemory, length: usize) -> Option<CountedBody<'a>> {
        let waits = AtomicBool::new(false);
        let reading = memory.read(Body::from(vec![b' '; length]), 20 << 20, &waits);
        let time = std::time::Duration::from_millis(50);
        tokio::time::timeout(time, reading).await.ok().and_then(Result::ok)
    }

    #[tokio::test]
    async fn short_bodies_never_wait_and_one_long_body_always_goes_on() {
        let memory = BodyMemory::new(1 << 20);
        let first = read(&memory, FREE + (1 << 20)).await.expect("all of the memory");
        let second = read(&memory, FREE + 1).await.expect("the one that goes beyond it");
        assert!(read(&memory, FREE + 1).await.is_none());
        for _ in 0..1000 {
            assert!(read(&memory, FREE).await.is_some());
        }
        drop(second);
        let second = read(&memory, 10 << 20).await.expect("it goes on");
        drop(first);
        assert!(read(&memory, FREE + (1 << 20)).await.is_some());
        drop(second);
        assert_eq!(memory.units.available_permits(), 1 << 10);
        assert_eq!(memory.overdraft.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_body_beyond_the_limit_is_not_kept() {
        let memory = BodyMemory::new(1 << 20);
        let waits = AtomicBool::new(false);
        let read = memory.read(Body::from(vec![b' '; 11]), 10, &waits).await;
        assert!(matches!(read, Err(BodyError::TooLong)));
        let read = memory.read(Body::from(vec![b' '; 10]), 10, &waits).await;
        assert!(read.is_ok_and(|body| body.bytes.len() == 10));
        assert_eq!(memory.units.available_permits(), 1 << 10);
    }
}
