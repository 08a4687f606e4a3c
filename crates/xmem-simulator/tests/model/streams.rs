//! Blocks that other streams use too.

use super::Model;
use std::collections::BTreeMap;
use xmem_simulator::Completion;

/// Recorded events, and how far the device is.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    completion: Completion,
    /// `cuda_events`: serial number, stream, block number; in the order of recording.
    events: Vec<(u64, u32, u64)>,
    last_serial: u64,
    /// All streams are done up to this event.
    done: u64,
    /// This stream is done up to this event.
    done_on: BTreeMap<u32, u64>,
    /// Block numbers whose frees wait for the end of all scopes.
    pub(super) deferred: Vec<u64>,
    /// `block_to_cudagraph_stream_uses`: what was recorded in scopes, by block number, with the
    /// number of the allocation that the block answered then. It is kept when the block is freed
    /// outside, and forgotten in the wrong life of the block.
    in_scopes: BTreeMap<u64, Vec<(u32, u64)>>,
}

impl Streams {
    pub(super) fn new(completion: Completion) -> Self {
        Self {
            completion,
            events: Vec::new(),
            last_serial: 0,
            done: 0,
            done_on: BTreeMap::new(),
            deferred: Vec::new(),
            in_scopes: BTreeMap::new(),
        }
    }

    /// `torch.cuda.synchronize`.
    pub(super) fn synchronize(&mut self) {
        self.done = self.last_serial;
    }

    /// `cudaStreamSynchronize`.
    pub(super) fn synchronize_stream(&mut self, stream: u32) {
        self.done_on.insert(stream, self.last_serial);
    }

    fn is_done(&self, serial: u64, stream: u32) -> bool {
        self.completion == Completion::Immediate
            || serial <= self.done
            || self.done_on.get(&stream).is_some_and(|&done| serial <= done)
    }
}

impl Model {
    pub(super) fn record_stream(&mut self, addr: u64, stream: u32) {
        let (s, b) = self.at(addr);
        if self.segments[s].stream == stream {
            return;
        }
        let block = &mut self.segments[s].blocks[b];
        let (number, life) = (block.number, block.life);
        add(&mut block.other_streams, stream);
        if self.is_capturing() {
            add(self.streams.in_scopes.entry(number).or_default(), (stream, life));
        }
    }

    /// `insert_events`: one for each other stream. Tells how many.
    pub(super) fn record_events(&mut self, number: u64) -> usize {
        let (s, b) = self.block_numbered(number);
        let mut others = std::mem::take(&mut self.segments[s].blocks[b].other_streams);
        others.sort_unstable();
        for &stream in &others {
            self.streams.last_serial += 1;
            self.streams.events.push((self.streams.last_serial, stream, number));
        }
        others.len()
    }

    /// `insert_events_deferred_until_no_capture`: what was recorded in scopes is forgotten.
    fn record_deferred(&mut self) -> usize {
        let mut completed = 0;
        for number in std::mem::take(&mut self.streams.deferred) {
            let (s, b) = self.block_numbered(number);
            if let Some(forget) = self.streams.in_scopes.remove(&number) {
                let block = &mut self.segments[s].blocks[b];
                let known = |stream: u32, life: Option<u64>| {
                    forget.iter().any(|&(s, l)| s == stream && life.is_none_or(|life| life == l))
                };
                let life = Some(block.life);
                let wrong = |&stream: &u32| known(stream, None) && !known(stream, life);
                self.beyond_the_simulator |= block.other_streams.iter().any(wrong);
                block.other_streams.retain(|&stream| !known(stream, None));
            }
            if self.record_events(number) == 0 {
                self.complete_free(number);
                completed += 1;
            }
        }
        completed
    }

    /// `process_events`: every stream's events from the front, as far as they are done.
    pub(super) fn process_events(&mut self) {
        let mut completed = self.record_deferred();
        let mut streams: Vec<u32> = self.streams.events.iter().map(|e| e.1).collect();
        streams.sort_unstable();
        streams.dedup();
        let of_several = streams.len() > 1;
        for stream in streams {
            while let Some(first) = self.streams.events.iter().position(|e| e.1 == stream) {
                let (serial, ..) = self.streams.events[first];
                if !self.streams.is_done(serial, stream) {
                    break;
                }
                completed += self.event_happened(first);
            }
        }
        self.completed(completed, of_several);
    }

    /// `synchronize_and_free_events`, of one private pool or all.
    pub(super) fn wait_for_events(&mut self, pool: Option<u32>) {
        self.figures.synchronisations += 1;
        let mut completed = self.record_deferred();
        let mut concerned: Vec<_> = self.streams.events.clone();
        concerned.retain(|&(_, _, number)| {
            let (s, _) = self.block_numbered(number);
            pool.is_none() || self.segments[s].pool.private == pool
        });
        concerned.sort_by_key(|&(serial, stream, _)| (stream, serial));
        let of_several = concerned.first().map(|e| e.1) != concerned.last().map(|e| e.1);
        for event in concerned {
            let done = self.streams.done_on.entry(event.1).or_default();
            *done = event.0.max(*done);
            let at = self.streams.events.iter().position(|e| *e == event).expect("still there");
            completed += self.event_happened(at);
        }
        self.completed(completed, of_several);
    }

    /// PyTorch goes through the streams in the order of a hash table (`cuda_events`). In 2.12 it decides the age of a
    /// block that is merged from several, and so what comes later.
    fn completed(&mut self, frees: usize, of_several_streams: bool) {
        let is_open = frees > 1;
        self.order_was_open |= is_open;
        let by_age_of_block = self.since(12) && !self.since(13);
        self.beyond_the_simulator |= is_open && of_several_streams && by_age_of_block;
    }

    /// Takes an event off the list, and completes the free that it was the last one for.
    fn event_happened(&mut self, at: usize) -> usize {
        let (_, _, number) = self.streams.events.remove(at);
        if self.streams.events.iter().any(|e| e.2 == number) {
            return 0;
        }
        self.complete_free(number);
        1
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, new: T) {
    if !list.contains(&new) {
        list.push(new);
    }
}
