//! The blocks to be placed, with what is known about each.

use super::PlanningError;
use super::breakdown::{Breakdown, JobPeaks};
use super::dnnmem::{DnnMemEstimate, DnnMemPolicies};
use super::iteration::{self, Life};
use crate::block_size::PlannedMemory;
use std::ops::Range;
use xmem_analyzer::{Phase, Role};
use xmem_planner::{BlockList, PlannedBlock};
use xmem_predict::{AllocatorSetup, Prediction, RoleShare};
use xmem_simulator::{AllocatorChoice, DeviceConfig, RequestIndex};
use xmem_types::{Bytes, IterationId, RequestKind};

/// The part of a recording that is planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanScope {
    /// The blocks that one iteration makes and frees.
    #[default]
    Iteration,
    /// Every block.
    All,
}

/// The origin of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanSource {
    /// One iteration of a recording.
    Iteration {
        /// The iteration.
        iteration: IterationId,
        /// The iterations of the recording.
        of: usize,
    },
    /// All of a recording.
    Recording,
    /// A list of operations.
    Operations,
    /// A table of blocks.
    Table,
}

/// The blocks to be placed. The id of a block is its place in [`list`](Self::list) and in [`facts`](Self::facts).
#[derive(Clone, Debug)]
pub struct PlanBlocks {
    /// Sizes, rounded as PyTorch's allocator rounds, and lifetimes; a tick is an allocation or a free.
    pub list: BlockList,
    /// The description of each block.
    pub facts: Vec<BlockFacts>,
    /// The origin of the blocks.
    pub source: PlanSource,
    /// The memory that is live during the iteration and not planned.
    pub outside: Option<OutsideBlocks>,
    /// The figures of all requests of the input with its own allocator.
    pub job: Option<JobPeaks>,
    /// The memory of the job at its peak, by category.
    pub breakdown: Option<Breakdown>,
    /// The allocator of the job.
    pub setup: Option<AllocatorSetup>,
}

/// The description of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFacts {
    /// Its name in the input, or its number there.
    pub name: String,
    /// Bytes that the program requests.
    pub requested: Bytes,
    /// The role; none if the input has no roles.
    pub role: Option<Role>,
    /// The phase of the iteration in which it is made; none where unknown.
    pub phase: Option<Phase>,
    /// The innermost operator that made it; empty where unknown.
    pub op: String,
}

/// The memory that is live during an iteration and outlives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideBlocks {
    /// The most bytes that are live at once.
    pub bytes: Bytes,
    /// The same by role, in the order of [`Role::ALL`]; roles without bytes are left out.
    pub by_role: Vec<RoleShare>,
    /// The most bytes that are live at once together with the blocks that are planned.
    pub together: Bytes,
}

impl BlockFacts {
    /// What is known about a block of a recording.
    pub(super) fn of(life: &Life, prediction: &Prediction<'_>) -> Self {
        let block = prediction.block(life.block);
        Self {
            name: life.block.0.to_string(),
            requested: life.requested,
            role: Some(block.role),
            phase: Some(block.phase),
            op: prediction.operator_name(life.block).to_owned(),
        }
    }
}

impl PlanBlocks {
    /// The blocks of a recording.
    ///
    /// # Errors
    /// If one iteration is to be planned and the recording has none.
    pub fn of_prediction(
        prediction: &Prediction<'_>,
        scope: PlanScope,
    ) -> Result<Self, PlanningError> {
        let lives = iteration::lives(prediction.requests(), PlannedMemory::Gpu);
        let starts = prediction.iteration_starts();
        let requests = prediction.requests().len();
        Ok(match scope {
            PlanScope::All => {
                let window = 0..requests;
                Self::of_window(prediction, &lives, PlanSource::Recording, &window)?
                    .with_job(prediction, &lives, &window)
            }
            PlanScope::Iteration => {
                let typical = iteration::typical(&lives, starts, requests);
                let (iteration, window) = typical.ok_or(PlanningError::NoIteration)?;
                let source = PlanSource::Iteration { iteration, of: starts.len() };
                Self::of_window(prediction, &lives, source, &window)?
                    .with_job(prediction, &lives, &window)
            }
        })
    }

    /// The blocks of each iteration that another one follows, without the figures of the job.
    ///
    /// # Errors
    /// If there are none.
    pub fn of_each_iteration(prediction: &Prediction<'_>) -> Result<Vec<Self>, PlanningError> {
        let lives = iteration::lives(prediction.requests(), PlannedMemory::Gpu);
        let starts = prediction.iteration_starts();
        let windows = iteration::windows(&lives, starts, prediction.requests().len());
        if windows.is_empty() {
            return Err(PlanningError::NoIteration);
        }
        let blocks = |(iteration, window)| {
            let iteration = IterationId::new(iteration);
            let source = PlanSource::Iteration { iteration, of: starts.len() };
            Self::of_window(prediction, &lives, source, window)
        };
        windows.iter().enumerate().map(blocks).collect()
    }

    /// The blocks that requests of `window` make and free, or all that there are in it.
    fn of_window(
        prediction: &Prediction<'_>,
        lives: &[Life],
        source: PlanSource,
        window: &Range<usize>,
    ) -> Result<Self, PlanningError> {
        let is_all = source == PlanSource::Recording;
        let (inside, outside): (Vec<&Life>, Vec<&Life>) = lives
            .iter()
            .filter(|life| life.size.get() > 0 && life.overlaps(window))
            .partition(|life| is_all || life.is_within(window));
        let list = list(&inside, prediction)?;
        let facts = inside.iter().map(|life| BlockFacts::of(life, prediction)).collect();
        let outside = (!is_all).then(|| {
            let role = |life: &Life| prediction.block(life.block).role;
            let all: Vec<&Life> = inside.iter().chain(&outside).copied().collect();
            outside_blocks(&outside, &all, role)
        });
        Ok(Self {
            list,
            facts,
            source,
            outside,
            job: None,
            breakdown: None,
            setup: Some(prediction.setup().clone()),
        })
    }

    fn with_job(self, prediction: &Prediction<'_>, lives: &[Life], window: &Range<usize>) -> Self {
        let device = prediction.device().without_limit();
        let job = job_peaks(prediction, &device);
        let breakdown = Breakdown::of_prediction(prediction, lives, window, job);
        Self { job: Some(job), breakdown: Some(breakdown), ..self }
    }

    /// The blocks for which `is_kept` is true, alone.
    pub(super) fn only(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        let kept = || (0..self.list.len()).filter(|&id| is_kept(id));
        let blocks = kept().map(|id| self.list.blocks()[id]).collect();
        Self {
            list: BlockList::new(blocks).expect("a part of a list is a list"),
            facts: kept().map(|id| self.facts[id].clone()).collect(),
            outside: None,
            job: None,
            breakdown: None,
            ..self.clone()
        }
    }

    /// The allocator of the job, and PyTorch's with its defaults where there is no job.
    #[must_use]
    pub fn allocator(&self) -> AllocatorChoice {
        self.setup.as_ref().map(|setup| setup.choice.clone()).unwrap_or_default()
    }

    /// The estimate of DNNMem; none of blocks that are not from a recorded job.
    #[must_use]
    pub fn dnnmem(&self, policies: &DnnMemPolicies) -> Option<DnnMemEstimate> {
        let breakdown = self.breakdown.as_ref()?;
        Some(policies.estimate(&breakdown.tensors, &self.allocator(), breakdown.context))
    }

    /// The requests of the blocks in the order of time, each with its tick: at the same tick frees come first.
    #[must_use]
    pub fn events(&self) -> Vec<(u32, usize, RequestKind)> {
        let mut events = Vec::with_capacity(2 * self.list.len());
        for (id, block) in self.list.blocks().iter().enumerate() {
            let size = self.facts[id].requested;
            let stream = xmem_types::StreamId(0);
            events.push((block.start, id, RequestKind::Alloc { size, stream }));
            events.push((block.end, id, RequestKind::Free));
        }
        let is_alloc = |kind: RequestKind| kind != RequestKind::Free;
        events.sort_by_key(|&(tick, id, kind)| (tick, is_alloc(kind), id));
        events
    }
}

fn job_peaks(prediction: &Prediction<'_>, device: &DeviceConfig) -> JobPeaks {
    let work = prediction.workload();
    let peaks = xmem_simulator::outline(work, prediction.allocator(), device, RequestIndex(0));
    JobPeaks { allocated: peaks.allocated, reserved: peaks.reserved }
}

/// The list of these blocks, with a tick for each of their requests. A block that is never freed ends at the last tick
/// + 1.
fn list(lives: &[&Life], prediction: &Prediction<'_>) -> Result<BlockList, PlanningError> {
    let mut requests: Vec<usize> =
        lives.iter().flat_map(|life| [Some(life.born), life.died]).flatten().collect();
    requests.sort_unstable();
    let tick = |request: usize| requests.partition_point(|&other| other < request) as u32;
    let last = requests.len() as u32;
    let block = |life: &&Life| PlannedBlock {
        size: life.size,
        start: tick(life.born),
        end: life.died.map_or(last, tick),
        operator: prediction.operator(life.block).map(|op| op.0),
    };
    Ok(BlockList::new(lives.iter().map(block).collect())?)
}

fn outside_blocks(outside: &[&Life], all: &[&Life], role: impl Fn(&Life) -> Role) -> OutsideBlocks {
    let (at, bytes) = iteration::largest_load(outside.iter().copied());
    let share = |of: Role| {
        let live = outside.iter().filter(|life| life.is_live_after(at) && role(life) == of);
        let (bytes, blocks) =
            live.fold((Bytes::ZERO, 0), |(bytes, blocks), life| (bytes + life.size, blocks + 1));
        RoleShare { role: of, bytes, blocks }
    };
    let by_role = Role::ALL.into_iter().map(share).filter(|share| share.blocks > 0).collect();
    OutsideBlocks { bytes, by_role, together: iteration::largest_load(all.iter().copied()).1 }
}
