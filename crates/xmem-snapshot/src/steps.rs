//! The operations of the program, step by step, inferred from the entries of the allocator.
//!
//! The trace has no entry for `empty_cache`, none for `record_stream`, and none that says that the
//! device refused memory. They are inferred from what they lead to; see [`StepKind`].

use crate::site::is_empty_cache;
use crate::{Action, DeviceIndex, Snapshot, StackId, TraceEntry};
use std::collections::BTreeSet;
use std::ops::Range;
use xmem_types::{Addr, Bytes, StreamId};

/// The largest request that the allocator serves from segments of 2 MiB (`kSmallSize`, c10/cuda/CUDACachingAllocator.cpp).
const LARGEST_SMALL: Bytes = Bytes::mib(1);

/// One thing that the program did, or that happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryStep {
    /// The kind.
    pub kind: StepKind,
    /// The entries of the trace that belong to it.
    pub entries: Range<usize>,
}

/// A kind of [`HistoryStep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// It got a block.
    Alloc {
        /// The block.
        addr: Addr,
        /// Its requested size.
        size: Bytes,
        /// The stream.
        stream: StreamId,
        /// The answer of the device.
        device: DeviceAnswer,
    },
    /// It requested a block of this rounded size in vain (`oom`).
    Failed {
        /// The size.
        rounded: Bytes,
        /// The stream.
        stream: StreamId,
    },
    /// It gave a block back.
    Free {
        /// The block.
        addr: Addr,
        /// The time at which it can be reused.
        reuse: Reuse,
    },
    /// A block that was freed earlier became free.
    Complete {
        /// The block.
        addr: Addr,
    },
    /// It called `torch.cuda.empty_cache`: segments were released outside of any allocation.
    EmptyCache,
}

/// The answer of the device to a request during an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceAnswer {
    /// It did, or was not asked.
    Granted,
    /// Not at first: segments were released in the middle of the allocation.
    Refused,
}

/// The time at which a block that is freed can be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// `free_completed` follows at once.
    AtOnce,
    /// Later: another stream used the block (`record_stream`).
    Later,
}

/// The segments that an allocation releases which the device refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseChoice {
    /// All that are cached, as `empty_cache` does.
    All,
    /// Some: `max_split_size_mb` or `garbage_collection_threshold` is set.
    Some,
}

impl Snapshot {
    /// The steps behind a part of a device's trace.
    #[must_use]
    pub fn steps(&self, trace: &[TraceEntry], choice: ReleaseChoice) -> Vec<HistoryStep> {
        steps(self, trace, choice)
    }

    /// The first entry of a device's trace from which on it is complete: if a trace begins with segments
    /// that are released, the events that led to it may be missing, where only the newest entries were
    /// kept. Then it is used from the next thing on that the program did.
    #[must_use]
    pub fn first_complete_entry(&self, device: DeviceIndex) -> usize {
        let trace = self.trace(device);
        let ends = |entry: &TraceEntry| match entry.action {
            Action::FreeRequested => Some(0),
            Action::Alloc | Action::OutOfMemory { .. } => Some(1),
            _ => None,
        };
        let end = trace.iter().enumerate().find_map(|(row, entry)| Some(row + ends(entry)?));
        let end = end.unwrap_or(0);
        if trace[..end].iter().any(is_release) { end } else { 0 }
    }
}

fn steps(snapshot: &Snapshot, trace: &[TraceEntry], choice: ReleaseChoice) -> Vec<HistoryStep> {
    let mut reader = Reader {
        snapshot,
        trace,
        choice,
        steps: Vec::new(),
        open: 0,
        held: BTreeSet::new(),
        freed: BTreeSet::new(),
    };
    let mut at = 0;
    while at < trace.len() {
        at = reader.entry(at);
    }
    reader.flush(at);
    reader.steps
}

struct Reader<'s> {
    snapshot: &'s Snapshot,
    trace: &'s [TraceEntry],
    choice: ReleaseChoice,
    steps: Vec<HistoryStep>,
    /// The first entry that no step has yet: entries from here on wait for what they belong to.
    open: usize,
    /// Blocks allocated in the trace and not freed.
    held: BTreeSet<Addr>,
    /// Freed blocks whose free has not completed.
    freed: BTreeSet<Addr>,
}

impl Reader<'_> {
    /// Takes the entry at `at`; the next one to take.
    fn entry(&mut self, at: usize) -> usize {
        let entry = self.trace[at];
        let addr = entry.addr;
        match entry.action {
            Action::Alloc => {
                let device = self.within_allocation(at);
                self.held.insert(addr);
                self.freed.remove(&addr);
                let (size, stream) = (entry.size, entry.stream);
                self.push(StepKind::Alloc { addr, size, stream, device }, at + 1);
            }
            Action::OutOfMemory { .. } => {
                self.within_allocation(at);
                let (rounded, stream) = (entry.size, entry.stream);
                self.push(StepKind::Failed { rounded, stream }, at + 1);
            }
            Action::FreeRequested => {
                self.flush(at);
                self.held.remove(&addr);
                let next = self.trace.get(at + 1);
                let completes =
                    |next: &TraceEntry| next.action == Action::FreeCompleted && next.addr == addr;
                if next.is_some_and(completes) {
                    self.push(StepKind::Free { addr, reuse: Reuse::AtOnce }, at + 2);
                    return at + 2;
                }
                self.freed.insert(addr);
                self.push(StepKind::Free { addr, reuse: Reuse::Later }, at + 1);
            }
            // Snapshots made from profiles (`_profile_to_snapshot` in torch/cuda/_memory_viz.py)
            // have no `free_requested`.
            Action::FreeCompleted if self.held.remove(&addr) => {
                self.flush(at);
                self.push(StepKind::Free { addr, reuse: Reuse::AtOnce }, at + 1);
            }
            _ => {}
        }
        at + 1
    }

    fn push(&mut self, kind: StepKind, end: usize) {
        self.steps.push(HistoryStep { kind, entries: self.open..end });
        self.open = end;
    }

    /// The entries up to `end` belong to no allocation: frees that complete, and an `empty_cache`
    /// if segments are released.
    fn flush(&mut self, end: usize) {
        self.complete(end);
        if (self.open..end).any(|at| is_release(&self.trace[at])) {
            self.push(StepKind::EmptyCache, end);
        }
        self.open = end;
    }

    /// Frees that complete among the entries that wait, up to `end`.
    fn complete(&mut self, end: usize) {
        for at in self.open..end {
            let entry = self.trace[at];
            if entry.action == Action::FreeCompleted {
                self.freed.remove(&entry.addr);
                let kind = StepKind::Complete { addr: entry.addr };
                self.steps.push(HistoryStep { kind, entries: at..at + 1 });
            }
        }
    }

    /// Sorts out what came before the end of an allocation, at `end`, and was not part of it.
    ///
    /// If the device refuses, the allocator waits for all streams, so that every free
    /// completes: then it does so itself when the block is requested.
    fn within_allocation(&mut self, end: usize) -> DeviceAnswer {
        let trace = self.trace;
        let grows =
            |at: &usize| matches!(trace[*at].action, Action::SegmentAlloc | Action::SegmentMap);
        let grown = (self.open..end).find(grows);
        // The allocator releases segments to make room for a new one, or before it gives up.
        let was_refused =
            grown.is_some() || matches!(trace[end].action, Action::OutOfMemory { .. });
        let outside = (self.open..grown.unwrap_or(end)).rev().find(|&at| {
            let (entry, last) = (&trace[at], &trace[end]);
            let within = was_refused && !self.would_hold(at, last) && self.inside(entry, last);
            is_release(entry) && !within
        });
        if let Some(last) = outside {
            self.flush(last + 1);
        }
        if (self.open..end).any(|at| is_release(&self.trace[at])) {
            for at in self.open..end {
                self.freed.remove(&self.trace[at].addr);
            }
            return DeviceAnswer::Refused;
        }
        self.complete(end);
        DeviceAnswer::Granted
    }

    /// Returns whether the allocation that ends with `last` would have taken its block from the segment of the release
    /// `at`, had that not been released before: trials of convolutions empty the cache (`emptyCache` in
    /// aten/src/ATen/native/cudnn/Conv_v8.cpp), under the stack of the allocations around them. A segment with a free
    /// that completed just before was no choice.
    fn would_hold(&self, at: usize, last: &TraceEntry) -> bool {
        let entry = &self.trace[at];
        let waited = |other: &TraceEntry| {
            let offset = other.addr.0.checked_sub(entry.addr.0);
            other.action == Action::FreeCompleted
                && offset.is_some_and(|offset| offset < entry.size.get())
        };
        entry.action == Action::SegmentFree
            && self.choice != ReleaseChoice::Some
            && entry.stream == last.stream
            && last.size > LARGEST_SMALL
            && entry.size >= last.size
            && !self.trace[self.open..at].iter().any(waited)
    }

    /// Returns whether a segment was released by the allocation that ends with `last`, and not by
    /// an `empty_cache` before it.
    ///
    /// An allocation writes all its entries with one call stack (`malloc` passes its context on).
    /// Without stacks, both look the same; then it is taken for an `empty_cache`, which releases
    /// the same segments as an allocation that the device refuses, unless an option makes that
    /// choosy.
    fn inside(&self, entry: &TraceEntry, last: &TraceEntry) -> bool {
        if is_empty_cache(self.snapshot, entry.stack) {
            return false;
        }
        if entry.stack != StackId::EMPTY || last.stack != StackId::EMPTY {
            return entry.stack == last.stack;
        }
        self.choice == ReleaseChoice::Some || matches!(last.action, Action::OutOfMemory { .. })
    }
}

fn is_release(entry: &TraceEntry) -> bool {
    matches!(entry.action, Action::SegmentFree | Action::SegmentUnmap)
}
