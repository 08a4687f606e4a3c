//! A plan that is followed by the requests of a recording or of a list, as an allocator follows it: with what it can know when
//! a request comes. What it has no place for is served by the allocator of the job.

mod arenas;

use self::arenas::Arenas;
use super::PlanningError;
use super::blocks::PlanBlocks;
use super::job_plan::{Arena, JobPlan, JobRequest};
use crate::block_size::rounded;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use xmem_planner::{Follower, Limits};
use xmem_predict::{AllocatorSetup, Prediction};
use xmem_simulator::{
    ChosenAllocator, Device, DeviceConfig, Framework, FrameworkAllocator, ReplayDriver,
    RequestIndex,
};
use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId, Workload};

/// Requests outside the plan after which another plan is made, and how often: those of the allocator in the crate
/// `xmem-planned`.
const MISSES: usize = 64;
const MAX_PLANS: usize = 8;

/// Requests up to this size that differ from the plan are the allocator's: `SMALL` in `native/following.c` there.
const SMALL: Bytes = Bytes(1 << 20);

/// What follows a plan.
#[derive(Clone, Debug)]
pub struct FollowInput {
    requests: Vec<Request>,
    /// The size of each, rounded as in the plan; of a free, nothing.
    sizes: Vec<Bytes>,
    /// The first request of each iteration.
    starts: Vec<usize>,
    setup: Option<AllocatorSetup>,
}

/// What became of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedAnswer {
    /// All requests.
    pub total: FollowedRequests,
    /// The parts, in order: what precedes the first iteration's end, and each later iteration; of a list, all of it.
    pub runs: Vec<FollowedRequests>,
    /// Plans that were made on the way, after 64 requests that the plan did not have.
    pub replans: usize,
    /// The most memory of the plan and of the allocator together.
    pub peak: Bytes,
    /// The most memory of the plan.
    pub plan_peak: Bytes,
    /// What the allocator reserves for the others.
    pub allocator_peak: Bytes,
    /// What the allocator alone reserves for all requests.
    pub alone: Bytes,
}

/// Requests by what serves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowedRequests {
    /// All.
    pub requests: usize,
    /// Those at their planned address.
    pub planned: usize,
    /// Those that the plan leaves to the allocator.
    pub outside: usize,
    /// Those that the plan does not have.
    pub unknown: usize,
    /// Those whose planned address is in use.
    pub occupied: usize,
    /// Those of another stream than the plan's.
    pub other_stream: usize,
    /// Those of the unknown ones and of those whose address is in use that have a place among the blocks of the plan.
    pub fitted: usize,
}

impl FollowedRequests {
    /// Those that the plan was to serve and did not.
    #[must_use]
    pub const fn misses(&self) -> usize {
        self.unknown + self.occupied + self.other_stream
    }

    fn add(&mut self, served: Served) {
        self.requests += 1;
        self.fitted += usize::from(served.is_fitted);
        *match served.by {
            ServedBy::Plan => &mut self.planned,
            ServedBy::Outside => &mut self.outside,
            ServedBy::Unknown => &mut self.unknown,
            ServedBy::Occupied => &mut self.occupied,
            ServedBy::OtherStream => &mut self.other_stream,
        } += 1;
    }
}

impl FollowInput {
    /// The requests of a recording.
    #[must_use]
    pub fn of_prediction(prediction: &Prediction<'_>) -> Self {
        let size = |request: &Request| match request.kind {
            RequestKind::Alloc { size, .. } if size > Bytes::ZERO => rounded(size),
            _ => Bytes::ZERO,
        };
        // The ends of later iterations are not known.
        let end = prediction.schedule().rest_start(prediction.profile());
        let requests = &prediction.requests()[..end.unwrap_or(prediction.requests().len())];
        Self {
            sizes: requests.iter().map(size).collect(),
            requests: requests.to_vec(),
            starts: prediction.iteration_starts().to_vec(),
            setup: Some(prediction.setup().clone()),
        }
    }

    /// The requests of these blocks, in one run.
    #[must_use]
    pub fn of_blocks(blocks: &PlanBlocks) -> Self {
        let request =
            |(_, id, kind): (u32, usize, RequestKind)| Request { block: BlockId(id as u32), kind };
        let requests: Vec<Request> = blocks.events().into_iter().map(request).collect();
        let size = |request: &Request| match request.kind {
            RequestKind::Alloc { .. } => blocks.list.blocks()[request.block.index()].size,
            RequestKind::Free => Bytes::ZERO,
        };
        Self {
            sizes: requests.iter().map(size).collect(),
            requests,
            starts: Vec::new(),
            setup: blocks.setup.clone(),
        }
    }

    /// Returns whether there is no request.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    fn driver(&self) -> ReplayDriver<'_, ChosenAllocator<()>> {
        let order = self.setup.as_ref().map(|setup| setup.address_order).unwrap_or_default();
        let device = DeviceConfig { address_order: order, ..DeviceConfig::default() };
        let choice = self.setup.as_ref().map(|setup| setup.choice.clone()).unwrap_or_default();
        let mut allocator = choice.over(Device::new(&device), ());
        allocator.lift_limit();
        ReplayDriver::new(allocator, Workload::from(&self.requests))
    }

    /// What the allocator alone reserves.
    fn alone(&self) -> Bytes {
        let mut driver = self.driver();
        let mut peak = Bytes::ZERO;
        for (at, request) in self.requests.iter().enumerate() {
            driver.serve_lifting_limits(RequestIndex(at), request);
            peak = peak.max(driver.allocator().reserved());
        }
        peak
    }
}

#[derive(Clone, Copy)]
struct Served {
    by: ServedBy,
    is_fitted: bool,
}

impl Served {
    const fn is_in_arenas(self) -> bool {
        self.is_fitted || matches!(self.by, ServedBy::Plan)
    }
}

#[derive(Clone, Copy)]
enum ServedBy {
    Plan,
    Outside,
    Unknown,
    Occupied,
    OtherStream,
}

impl JobPlan {
    /// Lets `input` follow the plan; `limits` are those of new plans.
    ///
    /// # Errors
    /// If the planner gives no new plan.
    pub fn follow(
        &self,
        input: &FollowInput,
        limits: &Limits,
    ) -> Result<FollowedAnswer, PlanningError> {
        let mut arenas = Arenas::default();
        let mut following = Following::new(self);
        let mut driver = input.driver();
        let mut answer = FollowedAnswer { alone: input.alone(), ..FollowedAnswer::default() };
        let mut run = FollowedRequests::default();
        let mut marks = input.starts.iter().skip(1).copied().peekable();
        let mut plans = Replanning::default();
        for (at, request) in input.requests.iter().enumerate() {
            if marks.next_if_eq(&at).is_some() {
                answer.runs.push(std::mem::take(&mut run));
                following.mark();
                if let Some(next) = plans.mark(input, at, &answer.total, self, limits)? {
                    following.replace(&next);
                    // As `xmem_plan_open` in `crates/xmem-planned/native/entry.c`.
                    driver.allocator_mut().release_cached(RequestIndex(at));
                    arenas.trim();
                    answer.replans += 1;
                }
            }
            match request.kind {
                RequestKind::Alloc { .. } if input.sizes[at] == Bytes::ZERO => continue,
                RequestKind::Alloc { stream, .. } => {
                    let (size, block) = (input.sizes[at], request.block);
                    let served = following.serve(&mut arenas, (size, stream, block));
                    run.add(served);
                    answer.total.add(served);
                    if !served.is_in_arenas() {
                        driver.serve_lifting_limits(RequestIndex(at), request);
                    }
                }
                RequestKind::Free if arenas.free(request.block) => {}
                RequestKind::Free => {
                    driver.serve_lifting_limits(RequestIndex(at), request);
                }
            }
            let reserved = driver.allocator().reserved();
            answer.plan_peak = answer.plan_peak.max(arenas.mapped());
            answer.allocator_peak = answer.allocator_peak.max(reserved);
            answer.peak = answer.peak.max(arenas.mapped() + reserved);
        }
        answer.runs.push(run);
        Ok(answer)
    }
}

/// The place in a plan.
struct Following {
    follower: Follower,
    sequences: [Sequence; 2],
    /// The warm-up is over.
    is_warm: bool,
    stream: Option<StreamId>,
    /// A plan has had an address.
    has_arenas: bool,
}

/// Requests of a plan, with the sizes for which they are good.
#[derive(Default)]
struct Sequence {
    sizes: Vec<RangeInclusive<Bytes>>,
    places: Vec<Option<(Arena, Bytes)>>,
}

impl Sequence {
    fn new(requests: &[JobRequest]) -> Self {
        Self {
            sizes: requests.iter().map(|request| request.least..=request.size).collect(),
            places: requests
                .iter()
                .map(|request| request.place.map(|place| (place.arena, place.offset)))
                .collect(),
        }
    }
}

impl Following {
    fn new(plan: &JobPlan) -> Self {
        let sequences = [&plan.warm_up, &plan.iteration].map(|requests| Sequence::new(requests));
        // A list has one part alone.
        let is_warm = plan.warm_up.is_empty();
        let has_arenas = has_places(plan);
        Self { follower: Follower::default(), sequences, is_warm, stream: None, has_arenas }
    }

    fn mark(&mut self) {
        self.is_warm = true;
        self.follower.mark();
    }

    fn replace(&mut self, plan: &JobPlan) {
        self.sequences = [&plan.warm_up, &plan.iteration].map(|requests| Sequence::new(requests));
        self.follower.mark();
        self.has_arenas |= has_places(plan);
    }

    fn serve(
        &mut self,
        arenas: &mut Arenas,
        (size, stream, block): (Bytes, StreamId, BlockId),
    ) -> Served {
        let elsewhere = |by| Served { by, is_fitted: false };
        let sequence = &self.sequences[usize::from(self.is_warm)];
        let at = self.follower.next(size, &sequence.sizes);
        let place = at.map(|at| sequence.places[at]);
        if place == Some(None) {
            return elsewhere(ServedBy::Outside);
        }
        let is_other = *self.stream.get_or_insert(stream) != stream;
        let by = match place.flatten() {
            None => ServedBy::Unknown,
            Some(_) if is_other => ServedBy::OtherStream,
            Some((arena, offset)) if arenas.place(arena, offset, size, block) => {
                return elsewhere(ServedBy::Plan);
            }
            Some(_) => ServedBy::Occupied,
        };
        let is_fitted = self.has_arenas && !is_other && size > SMALL;
        if is_fitted {
            arenas.fit(size, block);
        }
        Served { by, is_fitted }
    }
}

fn has_places(plan: &JobPlan) -> bool {
    [Arena::Iteration, Arena::Lasting].iter().any(|&arena| plan.bytes(arena) > Bytes::ZERO)
}

/// Plans that are made on the way.
#[derive(Default)]
struct Replanning {
    /// The starts of the last iterations.
    starts: Vec<usize>,
    marks: usize,
    misses: usize,
    plans: usize,
    next: Option<JobPlan>,
    last: Option<JobPlan>,
}

impl Replanning {
    /// An iteration has ended before request `at`. Returns the plan that was asked for at the last mark.
    fn mark(
        &mut self,
        input: &FollowInput,
        at: usize,
        total: &FollowedRequests,
        plan: &JobPlan,
        limits: &Limits,
    ) -> Result<Option<JobPlan>, PlanningError> {
        self.starts.push(at);
        self.marks += 1;
        let misses = total.unknown + total.occupied;
        if let Some(next) = self.next.take() {
            (self.misses, self.marks) = (misses, 0);
            return Ok(Some(next));
        }
        if misses - self.misses >= MISSES && self.plans < MAX_PLANS && self.marks > 2 {
            let [.., first, second, _] = self.starts[..] else { return Ok(None) };
            let (requests, starts) = renumbered(&input.requests[first..at], second - first);
            let earlier = self.last.as_ref().unwrap_or(plan);
            self.next = Some(JobPlan::of_requests(&requests, &starts, earlier, limits)?);
            self.last.clone_from(&self.next);
            self.plans += 1;
        }
        Ok(None)
    }
}

/// The requests of two iterations, whose blocks are numbered from zero, without the frees of others, and the first request of
/// each.
fn renumbered(requests: &[Request], second: usize) -> (Vec<Request>, [usize; 2]) {
    let mut numbers: BTreeMap<BlockId, BlockId> = BTreeMap::new();
    let (mut renumbered, mut start, mut blocks) = (Vec::new(), 0, 0);
    for (at, request) in requests.iter().enumerate() {
        if at == second {
            start = renumbered.len();
        }
        let block = match request.kind {
            RequestKind::Alloc { .. } => {
                let block = BlockId::new(blocks);
                blocks += 1;
                numbers.insert(request.block, block);
                Some(block)
            }
            RequestKind::Free => numbers.remove(&request.block),
        };
        renumbered.extend(block.map(|block| Request { block, ..*request }));
    }
    (renumbered, [0, start])
}

#[cfg(test)]
mod tests {
    use super::super::PlannedMemory;
    use super::*;
    use xmem_planner::Planner;

    /// Iterations with batches of these lengths: each of 12 layers keeps something for its backward pass, and makes and frees
    /// something of another size in both passes.
    fn job(lengths: &[u64]) -> FollowInput {
        let (mut requests, mut starts, mut blocks) = (Vec::new(), Vec::new(), 0);
        let mut alloc = |requests: &mut Vec<Request>, size: u64| {
            let block = BlockId::new(blocks);
            blocks += 1;
            let kind = RequestKind::Alloc { size: Bytes(size), stream: StreamId::default() };
            requests.push(Request { block, kind });
            block
        };
        for length in lengths {
            starts.push(requests.len());
            let mut kept = Vec::new();
            for _ in 0..12 {
                kept.push(alloc(&mut requests, length << 14));
                let block = alloc(&mut requests, length * 41_000);
                requests.push(Request { block, kind: RequestKind::Free });
            }
            for block in kept.into_iter().rev() {
                let passing = alloc(&mut requests, length * 29_000);
                for block in [block, passing] {
                    requests.push(Request { block, kind: RequestKind::Free });
                }
            }
        }
        let size = |request: &Request| match request.kind {
            RequestKind::Alloc { size, .. } => rounded(size),
            RequestKind::Free => Bytes::ZERO,
        };
        FollowInput { sizes: requests.iter().map(size).collect(), requests, starts, setup: None }
    }

    #[test]
    fn a_plan_for_one_length_takes_no_more_than_no_plan_where_lengths_vary() {
        let limits = Limits::default();
        let planned = job(&[512; 3]);
        let none = JobPlan::empty(PlannedMemory::Gpu, Planner::BestFit);
        let plan = JobPlan::of_requests(&planned.requests, &planned.starts, &none, &limits);
        let plan = plan.expect("planned");
        let answer = plan.follow(&job(&[512, 384, 448, 256, 512, 320]), &limits).expect("followed");
        assert!(answer.total.fitted > 0 && answer.total.fitted == answer.total.misses());
        assert!(answer.peak <= answer.alone, "{} and {}", answer.peak, answer.alone);
    }
}
