//! Chunks on several threads: each thread in turn cuts the next one off the text and parses it;
//! what comes of them is taken in file order.
//!
//! No thread waits for another unless there is nothing to do: the text is read by whoever needs a
//! chunk, and results are taken by whoever brings the one that was missing. So that memory stays
//! small, threads that are far ahead of a slow chunk wait for it.

use crate::ReadError;
use crate::document::Document;
use crate::parse::Chunk;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Results that may wait for an earlier one, for each thread.
const MAX_AHEAD: usize = 4;

/// Someone who works on chunks, one at a time.
pub(crate) trait Worker: Send {
    /// The result of a chunk.
    type Done: Send;

    /// Works on a chunk; returns its buffer, to be used again.
    fn work(&mut self, chunk: Chunk) -> (Self::Done, Vec<u8>);
}

/// Gives every chunk of `document` to one of `workers`, each on a thread of rayon's current pool, and
/// what comes of them to `take`, in file order and by the worker that happens to have it.
pub(crate) fn run<W: Worker>(
    document: &mut Document<'_>,
    workers: &mut [W],
    take: impl FnMut(&mut W, W::Done) + Send,
) -> Result<(), ReadError> {
    if let [only] = workers {
        return alone(document, only, take);
    }
    let ahead = MAX_AHEAD * workers.len();
    let shared = Shared {
        source: Mutex::new(Source { document, next: 0, ended: Ok(false) }),
        sink: Mutex::new(Sink { take, next: 0, waiting: VecDeque::new(), given_up: false }),
        moved: Condvar::new(),
        ahead,
    };
    rayon::scope(|scope| {
        for worker in workers {
            let shared = &shared;
            scope.spawn(move |_| shared.work(worker));
        }
    });
    let source = shared.source.into_inner().unwrap_or_else(PoisonError::into_inner);
    source.ended.map(drop)
}

fn alone<W: Worker>(
    document: &mut Document<'_>,
    worker: &mut W,
    mut take: impl FnMut(&mut W, W::Done),
) -> Result<(), ReadError> {
    let mut spare = Vec::new();
    while let Some(chunk) = document.next_chunk(|| std::mem::take(&mut spare))? {
        let (done, buffer) = worker.work(chunk);
        take(worker, done);
        spare = buffer;
    }
    Ok(())
}

struct Shared<'s, 'd, D, F> {
    source: Mutex<Source<'s, 'd>>,
    sink: Mutex<Sink<D, F>>,
    /// Signaled when results were taken.
    moved: Condvar,
    ahead: usize,
}

struct Source<'s, 'd> {
    document: &'s mut Document<'d>,
    /// Number of the next chunk.
    next: usize,
    ended: Result<bool, ReadError>,
}

struct Sink<D, F> {
    take: F,
    /// Number of the next result to take.
    next: usize,
    /// Results from that number on; none where one is still being worked on.
    waiting: VecDeque<Option<D>>,
    /// A worker has panicked: what it worked on will never come.
    given_up: bool,
}

impl<D, F> Shared<'_, '_, D, F> {
    fn work<W: Worker<Done = D>>(&self, worker: &mut W)
    where
        F: FnMut(&mut W, D),
    {
        let leaving = Leaving(self);
        let mut spare = Vec::new();
        loop {
            // The lock is released at the end of the statement.
            let next = lock(&self.source).next(&mut spare);
            let Some((number, chunk)) = next else { break };
            let (done, buffer) = worker.work(chunk);
            spare = buffer;
            let mut sink = lock(&self.sink);
            if sink.bring(worker, number, done) {
                self.moved.notify_all();
            }
            while sink.waiting.len() > self.ahead && !sink.given_up {
                sink = self.moved.wait(sink).unwrap_or_else(PoisonError::into_inner);
            }
        }
        drop(leaving);
    }
}

impl Source<'_, '_> {
    fn next(&mut self, spare: &mut Vec<u8>) -> Option<(usize, Chunk)> {
        if !matches!(self.ended, Ok(false)) {
            return None;
        }
        match self.document.next_chunk(|| std::mem::take(spare)) {
            Ok(Some(chunk)) => {
                self.next += 1;
                return Some((self.next - 1, chunk));
            }
            Ok(None) => self.ended = Ok(true),
            Err(error) => self.ended = Err(error),
        }
        None
    }
}

impl<D, F> Sink<D, F> {
    /// Takes a result and those that waited for it; whether there were any to take.
    fn bring<W>(&mut self, worker: &mut W, number: usize, done: D) -> bool
    where
        F: FnMut(&mut W, D),
    {
        let at = number - self.next;
        if self.waiting.len() <= at {
            self.waiting.resize_with(at + 1, || None);
        }
        self.waiting[at] = Some(done);
        let before = self.next;
        while let Some(Some(_)) = self.waiting.front() {
            if let Some(Some(done)) = self.waiting.pop_front() {
                (self.take)(worker, done);
                self.next += 1;
            }
        }
        self.next > before
    }
}

/// Wakes those that wait for a worker that panics.
struct Leaving<'a, 's, 'd, D, F>(&'a Shared<'s, 'd, D, F>);

impl<D, F> Drop for Leaving<'_, '_, '_, D, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.sink).given_up = true;
            self.0.moved.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOptions;
    use crate::source::with_text;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;
    use xmem_types::Bytes;

    /// Hands chunks back as text; takes its time over those that begin with this byte.
    struct Slow(u8);

    impl Worker for Slow {
        type Done = String;

        fn work(&mut self, chunk: Chunk) -> (String, Vec<u8>) {
            let text = String::from_utf8_lossy(chunk.text()).into_owned();
            assert!(!text.contains("panic"), "as asked");
            if text.contains(char::from(self.0)) {
                std::thread::sleep(Duration::from_millis(20));
            }
            (text, chunk.buffer)
        }
    }

    fn through(text: &str, threads: usize, slow: u8) -> Result<String, ReadError> {
        let options = ReadOptions { chunk: Bytes(64), ..ReadOptions::default() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        with_text(Box::new(text.as_bytes()), "test", &options, |text| {
            let mut document = Document::new(text, "test", &options);
            let mut workers: Vec<Slow> = (0..threads).map(|_| Slow(slow)).collect();
            let mut joined = String::new();
            let take = |_: &mut Slow, text: String| joined += &text;
            pool.expect("a pool").install(|| run(&mut document, &mut workers, take))?;
            Ok(joined)
        })
    }

    #[test]
    fn results_are_taken_in_file_order_whoever_is_slow() {
        let events: Vec<String> = (0..500).map(|i| format!("{{\"a\":{i}}}")).collect();
        let list = events.join(",");
        for threads in [1, 2, 5] {
            for slow in [b'7', b'\0'] {
                let joined = through(&format!("[{list}]"), threads, slow).expect("a list");
                assert_eq!(joined, list, "{threads} threads");
            }
        }
    }

    #[test]
    fn an_error_behind_good_chunks_ends_all_threads() {
        let events = "{\"a\":1},".repeat(100);
        let deep = format!("[{events}{}", "[".repeat(5000));
        let result = through(&deep, 3, b'\0');
        assert!(matches!(result, Err(ReadError::NestingTooDeep { .. })), "{result:?}");
    }

    #[test]
    fn a_worker_that_panics_leaves_none_waiting() {
        let many = "{\"a\":1},".repeat(2000);
        let text = format!("[{{\"panic\":1}},{many}{{}}]");
        assert!(catch_unwind(AssertUnwindSafe(|| through(&text, 3, b'\0'))).is_err());
    }
}
