//! What is not known for sure, and how far it may be off.

use crate::schedule::Schedule;
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId};

/// A named reason for which a size is not known for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doubt {
    /// Which algorithm cuDNN takes for a convolution, where the library was not asked.
    ConvolutionPlan,
    /// What a library needs that does not say so, like cuDNN's recurrent layers.
    Library,
    /// What an operator needs for which there is neither a rule nor evidence that it needs nothing.
    Operator,
}

impl Doubt {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 3] = [Self::ConvolutionPlan, Self::Library, Self::Operator];

    /// The name in reports (`convolution_plan`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConvolutionPlan => "convolution_plan",
            Self::Library => "library",
            Self::Operator => "operator",
        }
    }
}

/// The sizes that a block may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// At least.
    pub low: Bytes,
    /// At most.
    pub high: Bytes,
    /// Why it is not known.
    pub doubt: Doubt,
}

/// A block whose size is not known for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncertain {
    /// Its size.
    pub range: SizeRange,
    /// Where it is in the schedule.
    pub slot: Slot,
}

/// Where an uncertain block is in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// It is one of the blocks.
    Block(BlockId),
    /// It is not expected to be there at all. If it is, it is allocated just before one request, and
    /// freed just before another.
    Between {
        /// The request it is allocated before.
        alloc: usize,
        /// The request it is freed before; none if never.
        free: Option<usize>,
    },
}

/// One end of what is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Everything uncertain is as small as it may be.
    Low,
    /// Everything uncertain is as large as it may be.
    High,
}

impl SizeRange {
    /// One end of it.
    #[must_use]
    pub const fn at(&self, bound: Bound) -> Bytes {
        match bound {
            Bound::Low => self.low,
            Bound::High => self.high,
        }
    }
}

impl Schedule {
    /// The first `count` requests, where the blocks that `doubts` are about have the sizes of one
    /// end of what is possible. Blocks that are not expected have ids beyond
    /// [`Schedule::blocks`].
    ///
    /// # Panics
    /// If there are not as many requests.
    #[must_use]
    pub fn bounded(&self, count: usize, doubts: &[Doubt], bound: Bound) -> Vec<Request> {
        let mut sizes: Vec<Option<Bytes>> = vec![None; self.blocks.len()];
        let mut more: Vec<(usize, Request)> = Vec::new();
        let mut next = self.blocks.len();
        for uncertain in self.uncertain.iter().filter(|u| doubts.contains(&u.range.doubt)) {
            let size = uncertain.range.at(bound);
            match uncertain.slot {
                Slot::Block(id) => sizes[id.index()] = Some(size),
                Slot::Between { alloc, free } => {
                    let block = BlockId::new(next);
                    next += 1;
                    let kind = RequestKind::Alloc { size, stream: StreamId(0) };
                    more.push((alloc, Request { block, kind }));
                    more.extend(free.map(|at| (at, Request { block, kind: RequestKind::Free })));
                }
            }
        }
        // Stable: at one place, a block is allocated before it is freed.
        more.sort_by_key(|&(at, _)| at);
        let mut more = more.into_iter().peekable();
        let mut requests = Vec::with_capacity(count);
        for (row, request) in self.requests[..count].iter().enumerate() {
            while let Some((_, other)) = more.next_if(|&(at, _)| at <= row) {
                requests.push(other);
            }
            requests.push(match (request.kind, sizes[request.block.index()]) {
                (RequestKind::Alloc { stream, .. }, Some(size)) => {
                    Request { kind: RequestKind::Alloc { size, stream }, ..*request }
                }
                _ => *request,
            });
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn alloc(id: u32, size: u64) -> Request {
        let kind = RequestKind::Alloc { size: Bytes(size), stream: StreamId(0) };
        Request { block: BlockId(id), kind }
    }

    const fn free(id: u32) -> Request {
        Request { block: BlockId(id), kind: RequestKind::Free }
    }

    fn uncertain(low: u64, high: u64, doubt: Doubt, slot: Slot) -> Uncertain {
        Uncertain { range: SizeRange { low: Bytes(low), high: Bytes(high), doubt }, slot }
    }

    fn schedule() -> Schedule {
        let block = crate::schedule::ScheduledBlock {
            size: Bytes(10),
            role: xmem_analyzer::Role::Workspace,
            origin: None,
            rule: None,
            unmodelled: None,
            op: None,
            module: xmem_types::Sym::EMPTY,
            line: xmem_types::Sym::EMPTY,
            iteration: None,
            phase: xmem_analyzer::Phase::Init,
        };
        Schedule {
            requests: vec![alloc(0, 10), alloc(1, 10), free(0), free(1)],
            blocks: vec![block.clone(), block],
            uncertain: vec![
                uncertain(4, 30, Doubt::ConvolutionPlan, Slot::Block(BlockId(1))),
                uncertain(0, 7, Doubt::Operator, Slot::Between { alloc: 1, free: Some(1) }),
                uncertain(0, 9, Doubt::Operator, Slot::Between { alloc: 2, free: Some(3) }),
                uncertain(0, 5, Doubt::Library, Slot::Between { alloc: 3, free: None }),
            ],
            ..Schedule::default()
        }
    }

    #[test]
    fn only_what_a_doubt_is_about_changes() {
        let schedule = schedule();
        let high = |doubts: &[Doubt]| schedule.bounded(4, doubts, Bound::High);
        assert_eq!(high(&[]), schedule.requests);
        let plan = [alloc(0, 10), alloc(1, 30), free(0), free(1)];
        assert_eq!(high(&[Doubt::ConvolutionPlan]), plan);
        let low = schedule.bounded(4, &[Doubt::ConvolutionPlan], Bound::Low);
        assert_eq!(low, [alloc(0, 10), alloc(1, 4), free(0), free(1)]);
        assert_eq!(schedule.bounded(1, &Doubt::ALL, Bound::High), [alloc(0, 10)]);
    }

    #[test]
    fn what_is_not_expected_comes_before_its_request_and_goes_before_the_other() {
        let all = schedule().bounded(4, &[Doubt::Operator, Doubt::Library], Bound::High);
        let expected = [
            alloc(0, 10),
            alloc(2, 7),
            free(2),
            alloc(1, 10),
            alloc(3, 9),
            free(0),
            free(3),
            alloc(4, 5),
            free(1),
        ];
        assert_eq!(all, expected);
    }
}
