//! A plan that is used again: the iterations of a recording, or a list, with the addresses that were planned for
//! another one.

use super::PlanningError;
use super::allocators::AllocatorRun;
use super::blocks::{PlanBlocks, PlanSource};
use super::interruption::{Interruption, Parts};
use xmem_planner::{BlockList, HintsError, HotJob, Limits, Plan, PlannedBlock, Planner, Served};
use xmem_types::{Bytes, IterationId};

/// A plan as it is kept for later: the requests with their lifetimes and addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPlan {
    /// The planner, which plans again where needed.
    pub planner: Planner,
    /// The requests that are left out of the plan, and not counted.
    pub interruptions: Vec<Interruption>,
    /// The requests, in the order of their ordinals.
    pub requests: Vec<KeptRequest>,
}

/// A request of a [`KeptPlan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptRequest {
    /// Bytes, rounded.
    pub size: Bytes,
    /// The planned address.
    pub offset: Bytes,
    /// The first tick at which it is live.
    pub start: u32,
    /// The first tick at which it is no longer live.
    pub end: u32,
}

/// Runs of a job that follow a plan.
#[derive(Clone, Debug)]
pub struct HintedAnswer {
    /// The peak of the plan before the first run.
    pub planned: Bytes,
    /// The peak of the plan after the last run.
    pub planned_at_end: Bytes,
    /// The requests of the plan.
    pub requests: usize,
    /// The runs, in order.
    pub runs: Vec<HintedIteration>,
}

/// A run that follows a plan.
#[derive(Clone, Debug)]
pub struct HintedIteration {
    /// The iteration; none of a list.
    pub iteration: Option<IterationId>,
    /// Its requests that the plan is about.
    pub requests: usize,
    /// Its requests that are left out of the plan.
    pub left_out: usize,
    /// What the allocator of the job reserves for all of its blocks.
    pub allocator_reserved: Bytes,
    /// What the plan does; an error if it does not apply.
    pub followed: Result<HintedFigures, HintsError>,
}

/// The figures of a run that follows a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HintedFigures {
    /// Requests served at their planned address.
    pub planned: usize,
    /// Requests served by the allocator, because they are larger than planned.
    pub larger: usize,
    /// Requests served by the allocator, because a block at their address lived longer than planned.
    pub occupied: usize,
    /// The memory of the plan.
    pub plan_bytes: Bytes,
    /// What the allocator reserves for the requests that it serves, with those that are left out of the plan.
    pub allocator_bytes: Bytes,
    /// New plans that the run makes (Sekiyama's λ): one for each request that is larger or lives longer than in all
    /// runs before.
    pub replans: usize,
}

impl HintedFigures {
    /// The memory of the plan and of the allocator.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.plan_bytes + self.allocator_bytes
    }
}

impl HintedAnswer {
    /// The largest memory of a run: of one to which the plan does not apply, all is the allocator's, beside the plan's.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        let memory = |run: &HintedIteration| match &run.followed {
            Ok(figures) => figures.total(),
            Err(_) => self.planned_at_end + run.allocator_reserved,
        };
        self.runs.iter().map(memory).max().unwrap_or_default()
    }

    /// All new plans.
    #[must_use]
    pub fn replans(&self) -> usize {
        self.runs.iter().filter_map(|run| run.followed.as_ref().ok()).map(|run| run.replans).sum()
    }
}

impl KeptPlan {
    /// A plan of these blocks, to be kept.
    #[must_use]
    pub fn new(
        list: &BlockList,
        plan: &Plan,
        planner: Planner,
        interruptions: &[Interruption],
    ) -> Self {
        let request = |(block, &offset): (&PlannedBlock, &Bytes)| KeptRequest {
            size: block.size,
            offset,
            start: block.start,
            end: block.end,
        };
        let mut requests: Vec<_> = list.blocks().iter().zip(plan.offsets()).map(request).collect();
        requests.sort_by_key(|request| request.start);
        Self { planner, interruptions: interruptions.to_vec(), requests }
    }

    /// The memory that the plan needs.
    #[must_use]
    pub fn peak(&self) -> Bytes {
        self.requests.iter().map(|request| request.offset + request.size).max().unwrap_or_default()
    }

    /// Lets `runs` follow the plan, one after the other; `limits` are those of new plans.
    ///
    /// # Errors
    /// If the requests make no list.
    pub fn follow(
        &self,
        runs: &[PlanBlocks],
        limits: Limits,
    ) -> Result<HintedAnswer, PlanningError> {
        let block = |request: &KeptRequest| PlannedBlock {
            size: request.size,
            start: request.start,
            end: request.end,
            operator: None,
        };
        let list = BlockList::new(self.requests.iter().map(block).collect())?;
        let plan = Plan::new(&list, self.requests.iter().map(|request| request.offset).collect());
        xmem_planner::check(&list, &plan)?;
        let mut job = HotJob::new(&list, &plan, self.planner, limits);
        let planned = job.hints().peak;
        let runs = runs.iter().map(|blocks| run(&mut job, blocks, &self.interruptions)).collect();
        Ok(HintedAnswer { planned, planned_at_end: job.hints().peak, requests: list.len(), runs })
    }
}

fn run(job: &mut HotJob, blocks: &PlanBlocks, by: &[Interruption]) -> HintedIteration {
    let Parts { planned, left_out } = Parts::new(blocks, by);
    let followed = job.run(&planned.list).map(|run| {
        let count = |of: fn(&Served) -> bool| run.served.iter().filter(|served| of(served)).count();
        // The ids of the run are those among the planned blocks.
        let mut served = run.served.iter();
        let mut is_elsewhere = |&is_left_out: &bool| {
            is_left_out || !matches!(served.next(), Some(Served::Planned { .. }))
        };
        let is_elsewhere: Vec<bool> = left_out.iter().map(&mut is_elsewhere).collect();
        let elsewhere = blocks.only(|id| is_elsewhere[id]);
        HintedFigures {
            planned: count(|served| matches!(served, Served::Planned { .. })),
            larger: count(|served| *served == Served::Larger),
            occupied: count(|served| *served == Served::Occupied),
            plan_bytes: run.planned,
            allocator_bytes: AllocatorRun::of_job(&elsewhere).reserved,
            replans: run.replans,
        }
    });
    HintedIteration {
        iteration: match blocks.source {
            PlanSource::Iteration { iteration, .. } => Some(iteration),
            _ => None,
        },
        requests: planned.list.len(),
        left_out: blocks.list.len() - planned.list.len(),
        allocator_reserved: AllocatorRun::of_job(blocks).reserved,
        followed,
    }
}
