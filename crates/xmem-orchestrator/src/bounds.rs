//! A schedule with other sizes within their bounds.

use crate::schedule::Schedule;
use crate::uncertainty::{Bound, UncertainPlace, Uncertainty};
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId};

impl Schedule {
    /// The first `count` requests, with other sizes of the blocks that are uncertain by one of `causes`. Blocks that are not expected have ids beyond [`Schedule::blocks`].
    ///
    /// # Panics
    /// If there are not as many requests.
    #[must_use]
    pub fn bounded(&self, count: usize, causes: &[Uncertainty], bound: Bound) -> Vec<Request> {
        let mut sizes: Vec<Option<Bytes>> = vec![None; self.blocks.len()];
        let mut more: Vec<(usize, Request)> = Vec::new();
        let mut next = self.blocks.len();
        for uncertain in self.uncertain.iter().filter(|u| causes.contains(&u.range.cause)) {
            let Some(size) = uncertain.range.at(bound) else { continue };
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
    use crate::uncertainty::{SizeRange, UnaskedConvolution, UncertainBlock, WorkspaceFamily};
    use xmem_convolutions::ConvPass;

    const fn alloc(id: u32, size: u64) -> Request {
        let kind = RequestKind::Alloc { size: Bytes(size), stream: StreamId(0) };
        Request { block: BlockId(id), kind }
    }

    const fn free(id: u32) -> Request {
        Request { block: BlockId(id), kind: RequestKind::Free }
    }

    fn uncertain(low: u64, high: u64, cause: Uncertainty, place: UncertainPlace) -> UncertainBlock {
        UncertainBlock { range: SizeRange::new(Bytes(low), Bytes(high), cause), place }
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
    fn a_family_has_workspaces_of_its_own_where_no_release_was_asked() {
        let mut schedule = schedule();
        let causes = [Uncertainty::ConvolutionPlan, Uncertainty::Operator];
        let mib = 1 << 20;
        for family in WorkspaceFamily::ALL {
            let requests = schedule.bounded(4, &causes, Bound::Family(family));
            assert_eq!(requests, schedule.requests, "{family:?}");
        }
        for (pass, expected) in [
            (ConvPass::Forward, [0, 20, 40, 60, 80, 0, 0, 0, 0, 64, 80, 80, 96]),
            (ConvPass::BackwardData, [0, 20, 40, 60, 80, 0, 0, 0, 40, 64, 80, 80, 96]),
            (ConvPass::BackwardWeight, [0, 20, 40, 60, 80, 20, 60, 80, 40, 64, 80, 80, 96]),
        ] {
            let of = UnaskedConvolution { pass, tensors: Bytes::mib(20) };
            let range = schedule.uncertain[0].range.of_any_release(of);
            schedule.uncertain[0].range = range;
            for (family, workspace) in WorkspaceFamily::ALL.into_iter().zip(expected) {
                let requests = schedule.bounded(4, &causes, Bound::Family(family));
                assert_eq!(requests, [alloc(0, 10), alloc(1, workspace * mib), free(0), free(1)]);
                let others = schedule.bounded(4, &[Uncertainty::Operator], Bound::Family(family));
                assert_eq!(others, schedule.requests);
            }
        }
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
