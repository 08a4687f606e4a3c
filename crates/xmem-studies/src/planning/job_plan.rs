//! A plan that an allocator can follow while the job runs: what each request up to the first mark gets, and each one between
//! two marks. A mark is the end of an iteration.

mod places;
mod recorded;

use self::places::Places;
pub use self::recorded::RecordedJob;
use self::recorded::{Known, Sizes};
use super::interruption::{Interruption, Parts};
use super::iteration::Life;
use super::{PlanBlocks, PlannedMemory, PlanningError};
use std::collections::BTreeMap;
use xmem_planner::{Limits, Plan, Planner};
use xmem_predict::Prediction;
use xmem_types::{Bytes, Request};

/// The memory that a planned request is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arena {
    /// What one iteration makes and frees.
    Iteration,
    /// What the job keeps from before its second iteration to its end: parameters, optimizer state.
    Lasting,
}

/// The end of an iteration, as the allocator that follows a plan sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanMark {
    /// The steps of the optimizers have returned.
    Step,
    /// The model is called again, from outside all modules, without gradients: the job infers.
    Call,
    /// The former; where no optimizer steps, the latter.
    StepOrCall,
}

/// A plan for a whole job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// The memory that is planned.
    pub memory: PlannedMemory,
    /// The ends of its iterations.
    pub mark: PlanMark,
    /// The planner, which plans again where needed.
    pub planner: Planner,
    /// The requests that are left out of the plan.
    pub interruptions: Vec<Interruption>,
    /// The requests up to the first mark, in order.
    pub warm_up: Vec<JobRequest>,
    /// Those of each iteration behind it, in order from its mark. Where iterations make different requests, as with inputs of
    /// other shapes, each form of them, one behind the other.
    pub iteration: Vec<JobRequest>,
}

/// A request of a [`JobPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    /// Bytes, rounded: the largest for which the place is good.
    pub size: Bytes,
    /// The smallest.
    pub least: Bytes,
    /// The place; none if the allocator of the job serves it.
    pub place: Option<JobPlace>,
    /// The module that makes it, as a path; none where unknown.
    pub module: Option<String>,
    /// The operator that makes it; empty where unknown.
    pub operator: String,
    /// Its place among the requests of that operator in that module, from 0.
    pub nth: usize,
}

/// A planned address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPlace {
    /// The memory.
    pub arena: Arena,
    /// Bytes from its beginning.
    pub offset: Bytes,
}

impl JobPlan {
    /// A plan for a recorded job.
    ///
    /// # Errors
    /// If the recording has no iteration, or the planner gives no plan.
    pub fn of_prediction(
        prediction: &Prediction<'_>,
        planner: Planner,
        interruptions: &[Interruption],
        limits: &Limits,
    ) -> Result<Self, PlanningError> {
        Self::of_job(&RecordedJob::of_prediction(prediction, interruptions), planner, limits)
    }

    /// A plan without requests, for a job that is not known before it runs.
    #[must_use]
    pub const fn empty(memory: PlannedMemory, planner: Planner) -> Self {
        Self {
            memory,
            mark: PlanMark::StepOrCall,
            planner,
            interruptions: Vec::new(),
            warm_up: Vec::new(),
            iteration: Vec::new(),
        }
    }

    /// A plan for a job by two of its iterations, whose first requests are `starts`, without a warm-up. It is good for the
    /// sizes of `earlier`, too, if that has as many requests (Sekiyama et al.: the largest sizes seen stay).
    ///
    /// # Errors
    /// If there is no iteration, or the planner gives no plan.
    pub fn of_requests(
        requests: &[Request],
        starts: &[usize],
        earlier: &Self,
        limits: &Limits,
    ) -> Result<Self, PlanningError> {
        let known = |_: &Life| Known { module: None, operator: String::new(), is_left_out: false };
        let memory = (earlier.memory, earlier.mark);
        let recorded = RecordedJob::new(requests, starts, None, memory, known);
        let recorded = recorded.and_sizes_of(earlier);
        let plan = Self::of_job(&recorded, earlier.planner, limits)?;
        Ok(Self { warm_up: Vec::new(), ..plan })
    }

    /// The plan of a list as one iteration without a warm-up: `plan` has the addresses of those blocks that no interruption
    /// leaves out, in their order.
    #[must_use]
    pub fn of_list(
        blocks: &PlanBlocks,
        plan: &Plan,
        planner: Planner,
        interruptions: &[Interruption],
    ) -> Self {
        let Parts { left_out, .. } = Parts::new(blocks, interruptions);
        let mut offsets = plan.offsets().iter();
        let mut offset = |&is_left_out: &bool| (!is_left_out).then(|| offsets.next().copied());
        let offsets: Vec<Option<Bytes>> =
            left_out.iter().map(|is_left_out| offset(is_left_out).flatten()).collect();
        let mut order: Vec<usize> = (0..blocks.list.len()).collect();
        order.sort_by_key(|&id| blocks.list.blocks()[id].start);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut request = |id: usize| {
            let operator = &blocks.facts[id].op;
            let count = counts.entry(operator).or_default();
            *count += 1;
            let size = blocks.list.blocks()[id].size;
            let place = |offset| JobPlace { arena: Arena::Iteration, offset };
            JobRequest {
                size,
                least: size,
                place: offsets[id].map(place),
                module: None,
                operator: operator.clone(),
                nth: *count - 1,
            }
        };
        let iteration = order.into_iter().map(&mut request).collect();
        let interruptions = interruptions.to_vec();
        let (memory, mark) = (PlannedMemory::Gpu, PlanMark::Step);
        Self { memory, mark, planner, interruptions, warm_up: Vec::new(), iteration }
    }

    /// A plan of the iterations that `recorded` has, each form of them once, and of what precedes them.
    ///
    /// # Errors
    /// If there is no iteration, or the planner gives no plan.
    pub fn of_job(
        recorded: &RecordedJob,
        planner: Planner,
        limits: &Limits,
    ) -> Result<Self, PlanningError> {
        let places = Places { recorded, planner, limits };
        let mut iteration = Vec::new();
        let mut twins = Vec::new();
        for form in recorded.forms()? {
            let placed = places.of_form(&form)?;
            if twins.is_empty() {
                twins = recorded.twins(&form, &placed);
            }
            iteration.extend(recorded.requests(&form.requests, &form.sizes, &placed));
        }
        let mut placed = places.around(twins);
        placed.extend(places.lasting());
        let first = recorded.first();
        let sizes = Sizes::default();
        let warm_up = recorded.requests(&first, &sizes, &placed);
        let interruptions = recorded.interruptions().to_vec();
        let (memory, mark) = (recorded.memory, recorded.mark);
        Ok(Self { memory, mark, planner, interruptions, warm_up, iteration })
    }

    /// Returns whether there is no request.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.warm_up.is_empty() && self.iteration.is_empty()
    }

    /// The memory that an arena needs.
    #[must_use]
    pub fn bytes(&self, arena: Arena) -> Bytes {
        let all = self.warm_up.iter().chain(&self.iteration);
        let placed = all.filter_map(|request| Some((request.place?, request.size)));
        let ends = placed.filter(|(place, _)| place.arena == arena);
        ends.map(|(place, size)| place.offset + size).max().unwrap_or_default()
    }
}
