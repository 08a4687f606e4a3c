//! The iterations of a schedule: the requests of each, its blocks by position, and the counterparts of its
//! blocks in the iteration that the others are compared with.

mod align;

use crate::schedule::Schedule;
pub use align::align;
use align::align_by_size;
use std::ops::Range;
use xmem_analyzer::{Phase, Profile};
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId, Sym};

/// The requests of the iterations of a recording.
#[derive(Debug)]
pub struct RecordedIterations<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// The requests of each iteration; those after the last end when it ends.
    pub requests: Vec<Range<usize>>,
    /// The blocks that each iteration allocates, in order.
    pub blocks: Vec<Vec<BlockId>>,
    keys: Vec<Vec<Key>>,
    /// Per block: its iteration and its position there.
    owners: Vec<Option<Owner>>,
}

/// The iteration of a block, and its position among the blocks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The iteration.
    pub iteration: usize,
    /// The position among the blocks that it allocates.
    pub position: usize,
}

/// What two blocks of different iterations have in common if they are the same in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    op: Sym,
    rule: Option<&'static str>,
    module: Sym,
    line: Sym,
    phase: Phase,
    stream: StreamId,
}

impl<'a> RecordedIterations<'a> {
    /// The iterations of `schedule`, whose first requests are `starts`.
    #[must_use]
    pub fn new(profile: &Profile, schedule: &'a Schedule, starts: &[usize]) -> Self {
        let end = profile
            .iterations
            .last()
            .map_or(0, |last| schedule.times.partition_point(|&time| time < last.end));
        let mut requests = Vec::with_capacity(starts.len());
        for (i, &start) in starts.iter().enumerate() {
            let next = starts.get(i + 1).copied().unwrap_or(end);
            requests.push(start..next.max(start));
        }
        let mut found = Self {
            schedule,
            requests,
            blocks: Vec::new(),
            keys: Vec::new(),
            owners: vec![None; schedule.blocks.len()],
        };
        for iteration in 0..found.requests.len() {
            found.add(profile, iteration);
        }
        found
    }

    fn add(&mut self, profile: &Profile, iteration: usize) {
        let (mut blocks, mut keys) = (Vec::new(), Vec::new());
        for request in &self.schedule.requests[self.requests[iteration].clone()] {
            let Request { block, kind: RequestKind::Alloc { stream, .. } } = *request else {
                continue;
            };
            let place = self.schedule.place(profile, block);
            let op = place.op.map_or(Sym::EMPTY, |op| profile.op_symbol(op));
            self.owners[block.index()] = Some(Owner { iteration, position: blocks.len() });
            blocks.push(block);
            let (module, line, phase) = (place.module, place.line, place.phase);
            let rule = self.schedule.block(block).rule.map(|rule| rule.name);
            keys.push(Key { op, rule, module, line, phase, stream });
        }
        self.blocks.push(blocks);
        self.keys.push(keys);
    }

    /// The number of iterations.
    #[must_use]
    pub fn count(&self) -> usize {
        self.requests.len()
    }

    /// The iteration that allocates a block; none if that is before the first or after the last.
    #[must_use]
    pub fn owner(&self, block: BlockId) -> Option<Owner> {
        self.owners[block.index()]
    }

    /// The iteration with the most blocks, as some exist at some lengths only; of several the last. Neither the
    /// first iteration, which is not like the others, nor the last, whose blocks are not all seen to be freed; but of two
    /// iterations the last.
    #[must_use]
    pub fn fullest(&self) -> usize {
        let inner = 1..self.count().saturating_sub(1);
        let last = self.count().saturating_sub(1);
        inner.max_by_key(|&iteration| self.blocks[iteration].len()).unwrap_or(last)
    }

    /// For each block of `iteration`, the position of its counterpart in the iteration `other`.
    #[must_use]
    pub fn counterparts(&self, iteration: usize, other: usize) -> Vec<Option<usize>> {
        align(&self.keys[iteration], &self.keys[other])
    }

    /// The same of iterations that are alike: blocks of equal size are counterparts before others.
    #[must_use]
    pub fn counterparts_by_size(&self, iteration: usize, other: usize) -> Vec<Option<usize>> {
        let sized = |iteration: usize| -> Vec<(&Key, Bytes)> {
            let sizes = self.blocks[iteration].iter().map(|&block| self.schedule.block(block).size);
            self.keys[iteration].iter().zip(sizes).collect()
        };
        align_by_size(&sized(iteration), &sized(other))
    }

    /// The requests of an iteration.
    #[must_use]
    pub fn of(&self, iteration: usize) -> &'a [Request] {
        &self.schedule.requests[self.requests[iteration].clone()]
    }
}
