//! A plan as an allocator can use it online: it counts requests, and gives the request with some ordinal the address
//! that was planned for it (Sekiyama et al., "Profile-guided memory optimization for deep neural networks"). A job that
//! makes as many requests as the profiled one is "hot", and follows the plan as far as its requests are not larger;
//! those that are larger are served elsewhere, and the job is planned again with the largest sizes seen.

use crate::budget::Limits;
use crate::list::{BlockList, ListError, PlannedBlock};
use crate::plan::Plan;
use crate::planner::Planner;
use crate::refused::Refused;
use crate::run;
use std::collections::BTreeMap;
use thiserror::Error;
use xmem_types::Bytes;

/// The planned address of each request, in the order of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// By ordinal, from zero.
    pub requests: Vec<Hint>,
    /// The memory that the plan needs.
    pub peak: Bytes,
}

/// The planned address of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The most bytes for which the address is good.
    pub size: Bytes,
    /// The address, from the beginning of the plan's memory.
    pub offset: Bytes,
}

/// A job that is run again and again: the requests as they were seen so far, and a plan for them.
#[derive(Clone, Debug)]
pub struct HotJob {
    /// By ordinal: the largest size, and the requests made before the last free.
    profile: Vec<PlannedBlock>,
    hints: Hints,
    planner: Planner,
    limits: Limits,
}

/// One run of a job that follows hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintedRun {
    /// By the id of the block in the run's list: its memory.
    pub served: Vec<Served>,
    /// The memory of the plan that the run followed.
    pub planned: Bytes,
    /// The most bytes of blocks served elsewhere that are live at once: what they need at least, in addition to
    /// [`planned`](Self::planned). An allocator may need more.
    pub unplanned: Bytes,
    /// The number of requests that were larger or lived longer than in all runs before. In the paper's scheme,
    /// each of them makes a new plan.
    pub replans: usize,
}

/// The memory of one block of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// At its planned address.
    Planned {
        /// The address.
        offset: Bytes,
    },
    /// Elsewhere, because it is larger than the plan provides for.
    Larger,
    /// Elsewhere, because a block at its planned address lived longer than the plan assumes.
    Occupied,
}

/// The reason why a run cannot follow hints.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HintsError {
    /// It does not make as many requests as the profiled one.
    #[error(
        "the job makes {requests} requests where the plan has {planned}: it is not hot, and a plan by ordinals does not apply"
    )]
    NotHot {
        /// The requests of the plan.
        planned: usize,
        /// The requests of the run.
        requests: usize,
    },
    /// The largest requests of all runs have more bytes together than an offset can count.
    #[error("cannot plan the job again")]
    List(#[from] ListError),
    /// The new plan was refused.
    #[error("cannot plan the job again")]
    Plan(#[from] Refused),
}

impl Hints {
    /// The hints that `plan` gives. Requests are counted by the start of their blocks; of those that
    /// start at the same tick, the one with the lower id is the first.
    #[must_use]
    pub fn new(list: &BlockList, plan: &Plan) -> Self {
        let hint = |id: usize| Hint { size: list.blocks()[id].size, offset: plan.offsets()[id] };
        Self { requests: by_ordinal(list).into_iter().map(hint).collect(), peak: plan.peak() }
    }
}

impl HotJob {
    /// The job that was profiled as `list` and planned as `plan`; `planner` and `limits` make its next plans.
    #[must_use]
    pub fn new(list: &BlockList, plan: &Plan, planner: Planner, limits: Limits) -> Self {
        let hints = Hints::new(list, plan);
        Self { profile: counted(list), hints, planner, limits }
    }

    /// The hints of the present plan.
    #[must_use]
    pub const fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Runs the job with these requests. Its plan is made again afterwards, when nothing is live, if a request was
    /// larger or lived longer than before.
    ///
    /// # Errors
    /// If the number of requests differs from that of the profile, or the planner gives no plan. The job is as before
    /// then.
    pub fn run(&mut self, list: &BlockList) -> Result<HintedRun, HintsError> {
        if list.len() != self.profile.len() {
            let (planned, requests) = (self.profile.len(), list.len());
            return Err(HintsError::NotHot { planned, requests });
        }
        let served = self.serve(list);
        let elsewhere = list.blocks().iter().zip(&served);
        let elsewhere = elsewhere.filter(|(_, served)| !matches!(served, Served::Planned { .. }));
        let elsewhere = elsewhere.map(|(block, _)| *block).collect();
        let unplanned =
            BlockList::new(elsewhere).expect("a part of a list is a list").lower_bound();
        let planned = self.hints.peak;
        let mut profile = self.profile.clone();
        let mut replans = 0;
        for (known, seen) in profile.iter_mut().zip(counted(list)) {
            replans += usize::from(seen.size > known.size || seen.end > known.end);
            known.size = known.size.max(seen.size);
            known.end = known.end.max(seen.end);
        }
        if replans > 0 {
            let list = BlockList::new(profile)?;
            let planned = run::plan(&list, self.planner, &self.limits)?;
            self.hints = Hints::new(&list, &planned.plan);
            self.profile = list.blocks().to_vec();
        }
        Ok(HintedRun { served, planned, unplanned, replans })
    }

    /// The memory of each block, by id, in a replay of the requests.
    fn serve(&self, list: &BlockList) -> Vec<Served> {
        let blocks = list.blocks();
        let order = by_ordinal(list);
        let mut ends: Vec<usize> = order.clone();
        ends.sort_by_key(|&id| blocks[id].end);
        let mut ends = ends.into_iter().peekable();
        let mut served = vec![Served::Larger; blocks.len()];
        // By offset: the end of the memory of a block at its planned address.
        let mut live: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        for (id, hint) in order.into_iter().zip(&self.hints.requests) {
            let PlannedBlock { size, start, .. } = blocks[id];
            while let Some(ended) = ends.next_if(|&ended| blocks[ended].end <= start) {
                if let Served::Planned { offset } = served[ended]
                    && blocks[ended].size > Bytes::ZERO
                {
                    live.remove(&offset);
                }
            }
            if size > hint.size {
                continue;
            }
            let top = hint.offset + size;
            let below = live.range(..top).next_back();
            if size > Bytes::ZERO && below.is_some_and(|(_, &end)| end > hint.offset) {
                served[id] = Served::Occupied;
                continue;
            }
            served[id] = Served::Planned { offset: hint.offset };
            if size > Bytes::ZERO {
                live.insert(hint.offset, top);
            }
        }
        served
    }
}

/// The ids of the blocks by the ordinal of their requests.
fn by_ordinal(list: &BlockList) -> Vec<usize> {
    let mut order: Vec<usize> = (0..list.len()).collect();
    order.sort_by_key(|&id| list.blocks()[id].start);
    order
}

/// The blocks by ordinal, live from their own request until as many requests have been made as before their free.
/// Two runs have the same requests, but frees in between may differ.
fn counted(list: &BlockList) -> Vec<PlannedBlock> {
    let order = by_ordinal(list);
    let starts: Vec<u32> = order.iter().map(|&id| list.blocks()[id].start).collect();
    let count = |(ordinal, &id): (usize, &usize)| {
        let block = list.blocks()[id];
        let end = starts.partition_point(|&start| start < block.end);
        PlannedBlock { start: ordinal as u32, end: end as u32, ..block }
    };
    order.iter().enumerate().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(blocks: &[(u64, u32, u32)]) -> BlockList {
        let block =
            |&(size, start, end)| PlannedBlock { size: Bytes(size), start, end, operator: None };
        BlockList::new(blocks.iter().map(block).collect()).expect("a list")
    }

    fn job(list: &BlockList) -> HotJob {
        let limits = Limits::default();
        let planned = run::plan(list, Planner::BestFit, &limits).expect("a plan");
        HotJob::new(list, &planned.plan, Planner::BestFit, limits)
    }

    const fn at(offset: u64) -> Served {
        Served::Planned { offset: Bytes(offset) }
    }

    #[test]
    fn hints_are_in_the_order_of_requests() {
        let list = list(&[(4, 5, 6), (8, 0, 7), (2, 1, 3)]);
        let plan = Plan::new(&list, vec![Bytes(8), Bytes(0), Bytes(9)]);
        let hint = |size, offset| Hint { size: Bytes(size), offset: Bytes(offset) };
        let requests = vec![hint(8, 0), hint(2, 9), hint(4, 8)];
        assert_eq!(Hints::new(&list, &plan), Hints { requests, peak: Bytes(12) });
    }

    #[test]
    fn the_same_job_follows_the_plan_without_a_new_one() {
        let profiled = list(&[(4, 0, 2), (8, 1, 3), (4, 2, 4)]);
        let mut job = job(&profiled);
        // Smaller requests keep their addresses.
        for run in [profiled, list(&[(3, 0, 2), (8, 1, 3), (1, 2, 4)])] {
            let ran = job.run(&run).expect("hot");
            assert_eq!(ran.served, [at(8), at(0), at(8)]);
            assert_eq!((ran.planned, ran.unplanned), (Bytes(12), Bytes(0)));
            assert_eq!(ran.replans, 0);
        }
    }

    #[test]
    fn a_larger_request_is_served_elsewhere_once_and_planned_then() {
        let mut job = job(&list(&[(4, 0, 2), (8, 1, 3), (4, 2, 4)]));
        let larger = list(&[(4, 0, 2), (8, 1, 3), (6, 2, 4)]);
        let first = job.run(&larger).expect("hot");
        assert_eq!(first.served, [at(8), at(0), Served::Larger]);
        assert_eq!((first.planned, first.unplanned, first.replans), (Bytes(12), Bytes(6), 1));
        let second = job.run(&larger).expect("hot");
        assert_eq!((second.planned, second.unplanned, second.replans), (Bytes(14), Bytes(0), 0));
        assert!(second.served.iter().all(|served| matches!(served, Served::Planned { .. })));
        // The largest sizes of all runs stay.
        assert_eq!(job.hints().requests[2].size, Bytes(6));
        assert_eq!(job.run(&list(&[(4, 0, 2), (8, 1, 3), (4, 2, 4)])).expect("hot").replans, 0);
    }

    #[test]
    fn a_block_that_lives_longer_does_not_share_its_memory() {
        let mut job = job(&list(&[(8, 0, 1), (8, 1, 2)]));
        let longer = list(&[(8, 0, 2), (8, 1, 3)]);
        let first = job.run(&longer).expect("hot");
        assert_eq!(first.served, [at(0), Served::Occupied]);
        assert_eq!((first.unplanned, first.replans), (Bytes(8), 1));
        let second = job.run(&longer).expect("hot");
        assert_eq!((second.planned, second.unplanned, second.replans), (Bytes(16), Bytes(0), 0));
    }

    #[test]
    fn a_job_with_another_number_of_requests_is_not_hot() {
        let mut job = job(&list(&[(8, 0, 1), (8, 1, 2)]));
        let error = job.run(&list(&[(8, 0, 1)])).expect_err("one request less");
        assert_eq!(error, HintsError::NotHot { planned: 2, requests: 1 });
    }
}
