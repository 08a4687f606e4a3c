//! Planners and allocators on the same blocks.

use super::allocators::AllocatorRun;
use super::blocks::PlanBlocks;
use super::dnnmem::{DnnMemEstimate, DnnMemPolicies};
use super::fragmentation::FragmentationSeries;
use super::interruption::{InterruptedRun, Interruption};
use xmem_planner::{Limits, Planned, Planner, Refused};
use xmem_types::Bytes;

/// The planners to be run, and how long each may search.
#[derive(Clone, Debug, Default)]
pub struct PlanSettings {
    /// The planners, in the order of the answer.
    pub planners: Vec<Planner>,
    /// The limits of each.
    pub limits: Limits,
    /// The requests that are left out of the plans.
    pub interruptions: Vec<Interruption>,
    /// When the tensors of DNNMem's estimate are allocated and released.
    pub dnnmem: DnnMemPolicies,
}

/// Plans of the blocks, and what allocators do with them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanAnswer {
    /// The blocks that are planned.
    pub blocks: PlanBlocks,
    /// The blocks that are left out, if the plans are interrupted.
    pub interrupted: Option<InterruptedRun>,
    /// The planners' results, in the order of the settings.
    pub planners: Vec<PlannerOutcome>,
    /// The allocator of the job, on the same blocks alone.
    pub pytorch: AllocatorRun,
    /// The same with `expandable_segments:True`; none where that is no option, or on already.
    pub expandable: Option<AllocatorRun>,
    /// TensorFlow's allocator with `allow_growth`, on the same blocks alone.
    pub tensorflow: AllocatorRun,
    /// What DNNMem would say of a recorded job.
    pub dnnmem: Option<DnnMemEstimate>,
    /// The fragmentation of the best plan, if there is one.
    pub fragmentation: Option<FragmentationSeries>,
}

/// The result of a planner.
#[derive(Clone, Debug)]
pub struct PlannerOutcome {
    /// The planner.
    pub planner: Planner,
    /// Its plan, or the reason why there is none.
    pub result: Result<Planned, Refused>,
}

impl PlanSettings {
    /// Plans the blocks.
    #[must_use]
    pub fn compare(&self, blocks: PlanBlocks) -> PlanAnswer {
        let (blocks, interrupted) = match &self.interruptions[..] {
            [] => (blocks, None),
            by => {
                let (planned, interrupted) = InterruptedRun::new(&blocks, by);
                (planned, Some(interrupted))
            }
        };
        let outcome = |&planner: &Planner| {
            tracing::debug!(%planner, blocks = blocks.list.len(), "planning");
            PlannerOutcome {
                planner,
                result: xmem_planner::plan(&blocks.list, planner, &self.limits),
            }
        };
        let planners: Vec<PlannerOutcome> = self.planners.iter().map(outcome).collect();
        let (pytorch, tensorflow) =
            (AllocatorRun::of_job(&blocks), AllocatorRun::of_tensorflow(&blocks));
        let expandable = AllocatorRun::of_expandable_segments(&blocks);
        let fragmentation =
            best(&planners).map(|best| FragmentationSeries::of_plan(&blocks, &best.plan));
        let dnnmem = blocks.dnnmem(&self.dnnmem);
        PlanAnswer {
            blocks,
            interrupted,
            planners,
            pytorch,
            expandable,
            tensorflow,
            dnnmem,
            fragmentation,
        }
    }
}

impl PlanAnswer {
    /// The plan with the lowest peak: of equal ones a proven one, and else the first. None if no planner gave one.
    #[must_use]
    pub fn best(&self) -> Option<&Planned> {
        best(&self.planners)
    }

    /// The peak of the best plan, with what the allocator reserves for the blocks that are left out of it.
    #[must_use]
    pub fn with_interrupted(&self) -> Option<Bytes> {
        let left_out = self.interrupted.as_ref().map_or(Bytes::ZERO, |run| run.reserved);
        self.best().map(|best| best.plan.peak() + left_out)
    }

    /// The most bytes that are live at once.
    #[must_use]
    pub fn lower_bound(&self) -> Bytes {
        self.blocks.list.lower_bound()
    }

    /// True if some planner proved that no plan has a lower peak than the best one.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.best().is_some_and(Planned::is_optimal)
    }
}

fn best(planners: &[PlannerOutcome]) -> Option<&Planned> {
    let plans = planners.iter().filter_map(|outcome| outcome.result.as_ref().ok());
    plans.min_by_key(|planned| (planned.plan.peak(), !planned.is_optimal()))
}
