//! The iterations of a schedule: the requests of each, its blocks by position, and the counterparts of its
//! blocks in the iteration that the others are compared with.

use super::align::align;
use std::ops::Range;
use xmem_analyzer::{Phase, Profile};
use xmem_orchestrator::Schedule;
use xmem_types::{BlockId, Request, RequestKind, StreamId, Sym};

/// The requests of the iterations of a recording.
pub(super) struct RecordedIterations<'a> {
    pub(super) schedule: &'a Schedule,
    /// The requests of each iteration; those after the last end when it ends.
    pub(super) requests: Vec<Range<usize>>,
    /// The blocks that each iteration allocates, in order.
    pub(super) blocks: Vec<Vec<BlockId>>,
    keys: Vec<Vec<Key>>,
    /// Per block: its iteration and its position there.
    owners: Vec<Option<Owner>>,
}

/// The iteration of a block, and its position among the blocks of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) iteration: usize,
    pub(super) position: usize,
}

/// What two blocks of different iterations have in common if they are the same in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    op: Sym,
    module: Sym,
    line: Sym,
    phase: Phase,
    stream: StreamId,
}

impl<'a> RecordedIterations<'a> {
    /// The iterations of `schedule`, whose first requests are `starts`.
    pub(super) fn new(profile: &Profile, schedule: &'a Schedule, starts: &[usize]) -> Self {
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
            keys.push(Key { op, module, line, phase, stream });
        }
        self.blocks.push(blocks);
        self.keys.push(keys);
    }

    /// The number of iterations.
    pub(super) fn count(&self) -> usize {
        self.requests.len()
    }

    /// The iteration that allocates a block; none if that is before the first or after the last.
    pub(super) fn owner(&self, block: BlockId) -> Option<Owner> {
        self.owners[block.index()]
    }

    /// The iteration with the most blocks, as some exist at some lengths only; of several the last. Neither the
    /// first iteration, which is not like the others, nor the last, whose blocks are not all seen to be freed.
    pub(super) fn fullest(&self) -> usize {
        let inner = 1..self.count().saturating_sub(1);
        inner.max_by_key(|&iteration| self.blocks[iteration].len()).unwrap_or(0)
    }

    /// For each block of `iteration`, the position of its counterpart in the iteration `other`.
    pub(super) fn counterparts(&self, iteration: usize, other: usize) -> Vec<Option<usize>> {
        align(&self.keys[iteration], &self.keys[other])
    }

    /// The requests of an iteration.
    pub(super) fn of(&self, iteration: usize) -> &'a [Request] {
        &self.schedule.requests[self.requests[iteration].clone()]
    }
}
