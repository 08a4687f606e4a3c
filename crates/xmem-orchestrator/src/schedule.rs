//! The result: allocator requests in program order, and what each block is.

use crate::doubt::Uncertain;
use crate::rules::RuleEffect;
use xmem_analyzer::{Phase, Role};
use xmem_types::{BlockId, Bytes, Fallbacks, IterationId, Nanos, OpId, Request, Sym, Workload};

/// What the job asks of the GPU's allocator, in order.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// The requests; block ids index [`Schedule::blocks`].
    pub requests: Vec<Request>,
    /// Per request: the time in the CPU trace that it stands for. Never decreasing.
    pub times: Vec<Nanos>,
    /// Every block that is requested.
    pub blocks: Vec<ScheduledBlock>,
    /// Smaller sizes that some blocks may have where memory is short.
    pub fallbacks: Fallbacks,
    /// Blocks whose size is not known for sure.
    pub uncertain: Vec<Uncertain>,
    /// What each rule did, in the order of the rule table.
    pub effects: Vec<RuleEffect>,
}

/// One block of the schedule.
#[derive(Clone, Debug)]
pub struct ScheduledBlock {
    /// Requested bytes on the GPU.
    pub size: Bytes,
    /// What it is.
    pub role: Role,
    /// The block of the profile that it stands for; none if a rule added it.
    pub origin: Option<BlockId>,
    /// The rule that added, resized or retimed it.
    pub rule: Option<&'static str>,
    /// The operator that made it, if it is not known what that asks for on CUDA.
    pub unmodelled: Option<OpId>,
    /// Innermost operator of the CPU trace at its allocation.
    pub op: Option<OpId>,
    /// Module path.
    pub module: Sym,
    /// Python line.
    pub line: Sym,
    /// Iteration of its allocation.
    pub iteration: Option<IterationId>,
    /// Phase of its allocation.
    pub phase: Phase,
}

impl Schedule {
    /// The first `count` requests as what an allocator is asked for.
    ///
    /// # Panics
    /// If there are not as many.
    #[must_use]
    pub fn workload(&self, count: usize) -> Workload<'_> {
        Workload::new(&self.requests[..count], &self.fallbacks)
    }

    /// The block behind an id.
    #[must_use]
    pub fn block(&self, id: BlockId) -> &ScheduledBlock {
        &self.blocks[id.index()]
    }
}
