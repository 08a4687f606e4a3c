//! A schedule with other sizes within their bounds.

use crate::schedule::Schedule;
use crate::uncertainty::{Bound, UncertainPlace, Uncertainty};
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId};

impl Schedule {
    /// The first `count` requests, with the least or the largest sizes of the blocks that are uncertain
    /// by one of `causes`. Blocks that are not expected have ids beyond [`Schedule::blocks`].
    ///
    /// # Panics
    /// If there are not as many requests.
    #[must_use]
    pub fn bounded(&self, count: usize, causes: &[Uncertainty], bound: Bound) -> Vec<Request> {
        let mut sizes: Vec<Option<Bytes>> = vec![None; self.blocks.len()];
        let mut more: Vec<(usize, Request)> = Vec::new();
        let mut next = self.blocks.len();
        for uncertain in self.uncertain.iter().filter(|u| causes.contains(&u.range.cause)) {
            let size = uncertain.range.at(bound);
            match uncertain.place {
                UncertainPlace::Block(id) => sizes[id.index()] = Some(size),
                UncertainPlace::Between { alloc, free } => {
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
    use crate::schedule::{Origin, ScheduledBlock};
    use crate::uncertainty::{SizeRange, UncertainBlock};

    const fn alloc(id: u32, size: u64) -> Request {
        let kind = RequestKind::Alloc { size: Bytes(size), stream: StreamId(0) };
        Request { block: BlockId(id), kind }
    }

    const fn free(id: u32) -> Request {
        Request { block: BlockId(id), kind: RequestKind::Free }
    }

    fn uncertain(low: u64, high: u64, cause: Uncertainty, place: UncertainPlace) -> UncertainBlock {
        UncertainBlock { range: SizeRange { low: Bytes(low), high: Bytes(high), cause }, place }
    }

    fn schedule() -> Schedule {
        let block = ScheduledBlock {
            size: Bytes(10),
            role: xmem_analyzer::Role::Workspace,
            origin: Origin::Preexisting,
            rule: None,
            unmodeled: None,
        };
        Schedule {
            requests: vec![alloc(0, 10), alloc(1, 10), free(0), free(1)],
            blocks: vec![block.clone(), block],
            uncertain: vec![
                uncertain(4, 30, Uncertainty::ConvolutionPlan, UncertainPlace::Block(BlockId(1))),
                uncertain(
                    0,
                    7,
                    Uncertainty::Operator,
                    UncertainPlace::Between { alloc: 1, free: Some(1) },
                ),
                uncertain(
                    0,
                    9,
                    Uncertainty::Operator,
                    UncertainPlace::Between { alloc: 2, free: Some(3) },
                ),
                uncertain(
                    0,
                    5,
                    Uncertainty::Library,
                    UncertainPlace::Between { alloc: 3, free: None },
                ),
            ],
            ..Schedule::default()
        }
    }

    #[test]
    fn only_blocks_with_the_cause_change() {
        let schedule = schedule();
        let high = |causes: &[Uncertainty]| schedule.bounded(4, causes, Bound::High);
        assert_eq!(high(&[]), schedule.requests);
        let plan = [alloc(0, 10), alloc(1, 30), free(0), free(1)];
        assert_eq!(high(&[Uncertainty::ConvolutionPlan]), plan);
        let low = schedule.bounded(4, &[Uncertainty::ConvolutionPlan], Bound::Low);
        assert_eq!(low, [alloc(0, 10), alloc(1, 4), free(0), free(1)]);
        assert_eq!(schedule.bounded(1, &Uncertainty::ALL, Bound::High), [alloc(0, 10)]);
    }

    #[test]
    fn an_unexpected_block_is_allocated_and_freed_just_before_its_requests() {
        let all =
            schedule().bounded(4, &[Uncertainty::Operator, Uncertainty::Library], Bound::High);
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
