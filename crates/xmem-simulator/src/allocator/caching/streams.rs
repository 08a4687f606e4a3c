//! Blocks that other streams use: their frees wait for events.

use super::hash::slot_order;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use xmem_types::{BlockId, StreamId};

/// Work handed to the device, in order: everything up to a number is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket(u64);

/// The hash of a `CUDAStream`: its packed device and number. The k-th stream of default priority
/// that a program makes has the number 32 (k - 1) + 3 (`StreamIdType` and the pool index in
/// `c10/cuda/CUDAStream.cpp`).
fn hash_of(stream: StreamId) -> u64 {
    const CUDA: u64 = 1 << 56;
    match stream.0 {
        0 => CUDA,
        k => CUDA | (u64::from(k) - 1) << 5 | 3,
    }
}

/// `stream_uses`, `event_count` and `cuda_events`.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamUses {
    /// The streams that use a block, besides its own.
    uses: FxHashMap<u32, BTreeSet<StreamId>>,
    /// Of those, which were recorded during a capture (`block_to_cudagraph_stream_uses`).
    captured: FxHashMap<u32, BTreeSet<StreamId>>,
    /// For how many events a block waits.
    waiting: FxHashMap<u32, u32>,
    /// Events by stream, in the order of PyTorch's hash table.
    queues: BTreeMap<(u64, StreamId), VecDeque<(Ticket, u32)>>,
    /// Blocks freed during a capture (`needs_events_deferred_until_no_capture`).
    deferred: Vec<u32>,
    last: Ticket,
    done: Ticket,
    /// Blocks whose free will wait until the caller says that it is complete.
    to_await: FxHashMap<u32, BlockId>,
    /// Those that are freed.
    awaited: BTreeMap<BlockId, u32>,
    /// On one stream more may be done than on all.
    done_on: BTreeMap<StreamId, Ticket>,
}

impl StreamUses {
    pub(super) fn record(&mut self, slot: u32, stream: StreamId) {
        self.uses.entry(slot).or_default().insert(stream);
    }

    pub(super) fn record_in_capture(&mut self, slot: u32, stream: StreamId) {
        self.record(slot, stream);
        self.captured.entry(slot).or_default().insert(stream);
    }

    /// `insert_events`: the block waits for all streams that use it.
    pub(super) fn await_streams(&mut self, slot: u32) {
        let streams = self.uses.remove(&slot).unwrap_or_default();
        self.captured.remove(&slot);
        self.last.0 += 1;
        for &stream in &streams {
            let place = (slot_order(hash_of(stream)), stream);
            self.queues.entry(place).or_default().push_back((self.last, slot));
        }
        self.waiting.insert(slot, streams.len() as u32);
    }

    /// The block is freed during a capture: nothing can be recorded until that ends.
    pub(super) fn defer(&mut self, slot: u32) {
        self.deferred.push(slot);
    }

    /// `insert_events_deferred_until_no_capture`. Uses recorded during the capture are over with
    /// it; blocks without others are returned, as they can be freed.
    pub(super) fn await_deferred(&mut self) -> Vec<u32> {
        let mut over = Vec::new();
        for slot in std::mem::take(&mut self.deferred) {
            if let Some(captured) = self.captured.remove(&slot)
                && let Some(uses) = self.uses.get_mut(&slot)
            {
                uses.retain(|stream| !captured.contains(stream));
            }
            self.await_streams(slot);
            if self.waiting[&slot] == 0 {
                self.waiting.remove(&slot);
                over.push(slot);
            }
        }
        over
    }

    pub(super) fn nothing_waits(&self) -> bool {
        self.queues.is_empty() && self.deferred.is_empty()
    }

    /// The device is done with all work so far.
    pub(super) fn finish(&mut self) {
        self.done = self.last;
    }

    /// The device is done with all work of one stream so far.
    pub(super) fn finish_on(&mut self, stream: StreamId) {
        self.done_on.insert(stream, self.last);
    }

    /// The device is done with all work on some blocks, which are returned as they wait no more.
    pub(super) fn finish_those(&mut self, chosen: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut free = Vec::new();
        let Self { queues, waiting, done_on, .. } = self;
        queues.retain(|&(_, stream), queue| {
            for &(ticket, slot) in queue.iter().filter(|&&(_, slot)| chosen(slot)) {
                free.extend(happened(waiting, slot));
                // A stream works in order: what came before is done too.
                let done = done_on.entry(stream).or_default();
                *done = ticket.max(*done);
            }
            queue.retain(|&(_, slot)| !chosen(slot));
            !queue.is_empty()
        });
        free
    }

    /// The free of a block will wait until [`complete`](Self::complete).
    pub(super) fn await_completion(&mut self, slot: u32, id: BlockId) {
        self.to_await.insert(slot, id);
    }

    /// The block is freed: returns whether that waits for [`complete`](Self::complete).
    pub(super) fn free_awaited(&mut self, slot: u32) -> bool {
        let Some(id) = self.to_await.remove(&slot) else { return false };
        self.uses.remove(&slot);
        self.captured.remove(&slot);
        self.awaited.insert(id, slot);
        true
    }

    /// The free of a block is complete, unless it was before.
    pub(super) fn complete(&mut self, id: BlockId) -> Option<u32> {
        self.awaited.remove(&id)
    }

    /// All frees are complete.
    pub(super) fn complete_all(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.awaited).into_values().collect()
    }

    /// The frees of some blocks are complete.
    pub(super) fn complete_those(&mut self, chosen: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut free = Vec::new();
        self.awaited.retain(|_, &mut slot| {
            let is_chosen = chosen(slot);
            if is_chosen {
                free.push(slot);
            }
            !is_chosen
        });
        free
    }

    /// `process_events`: blocks that no longer wait for any stream.
    pub(super) fn completed(&mut self) -> Vec<u32> {
        let mut free = Vec::new();
        let Self { queues, waiting, done, done_on, .. } = self;
        queues.retain(|(_, stream), queue| {
            let done = done_on.get(stream).map_or(*done, |&on| on.max(*done));
            while queue.front().is_some_and(|&(ticket, _)| ticket <= done) {
                free.extend(queue.pop_front().and_then(|(_, slot)| happened(waiting, slot)));
            }
            !queue.is_empty()
        });
        free
    }
}

/// One of the events that a block waits for happened: the block, if it was the last one.
fn happened(waiting: &mut FxHashMap<u32, u32>, slot: u32) -> Option<u32> {
    let count = waiting.get_mut(&slot)?;
    *count -= 1;
    (*count == 0).then(|| {
        waiting.remove(&slot);
        slot
    })
}
