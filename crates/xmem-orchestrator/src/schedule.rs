//! The result: allocator requests in program order, and the origin of each block.

use crate::rule::{Rule, RuleEffect};
use crate::uncertainty::{UncertainBlock, UncertainPlace};
use std::collections::BTreeMap;
use xmem_analyzer::{Phase, Profile, Role};
use xmem_convolutions::ConvolutionQuestion;
use xmem_types::{
    BlockId, Bytes, Fallbacks, IterationId, Nanos, OpId, PlacedCall, Request, RequestKind,
    StreamId, Sym, Workload,
};

/// The requests of the job to the GPU's allocator, in order.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// The requests; block ids index [`Schedule::blocks`].
    pub requests: Vec<Request>,
    /// Per request: the time in the CPU trace that it stands for. Never decreasing.
    pub times: Vec<Nanos>,
    /// Every block that is requested.
    pub blocks: Vec<ScheduledBlock>,
    /// What the program does to the allocator between the requests, in order: only recordings of a GPU show
    /// it.
    pub calls: Vec<PlacedCall>,
    /// Smaller sizes that some blocks may have where memory is short.
    pub fallbacks: Fallbacks,
    /// The convolutions whose workspaces some blocks of a recorded GPU are, where the sizes of their plans are known.
    pub workspaces: BTreeMap<BlockId, ConvolutionQuestion>,
    /// The convolutions of a recorded GPU whose plans need no workspace, each with the block behind whose allocation one would
    /// be.
    pub without_workspace: Vec<WithoutWorkspace>,
    /// Blocks whose size is not known for sure.
    pub uncertain: Vec<UncertainBlock>,
    /// Whether there may be other requests, which no range bounds: those of libraries and kernels of another GPU than the
    /// recorded one, or of plans of cuDNN that are not known.
    pub unbounded: bool,
    /// Whether what follows the recorded iterations is in it, if that was recorded.
    pub has_rest: bool,
    /// Whether memory that was there before the recording began is inferred from its use.
    pub starts_late: bool,
    /// The effect of each rule, in the order of [`rules`](crate::rules()).
    pub effects: Vec<RuleEffect>,
    /// The recorded blocks that rules left out, in the order of the profile.
    pub left_out: Vec<LeftOut>,
}

/// A convolution that needs no workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutWorkspace {
    /// The convolution.
    pub convolution: ConvolutionQuestion,
    /// Its operator.
    pub op: OpId,
    /// The block behind whose allocation one would be.
    pub behind: BlockId,
}

/// A recorded block that is not in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The block of the profile.
    pub block: BlockId,
    /// The row of the rule in [`Schedule::effects`].
    pub effect: u32,
}

/// One block of the schedule.
#[derive(Clone, Debug)]
pub struct ScheduledBlock {
    /// Requested bytes on the GPU.
    pub size: Bytes,
    /// Its role in the job.
    pub role: Role,
    /// Its origin in the trace.
    pub origin: Origin,
    /// The rule that added, resized or retimed it.
    pub rule: Option<&'static Rule>,
    /// The operator that made it, if that operator has no CUDA model.
    pub unmodeled: Option<OpId>,
}

/// A block that is added to a schedule.
#[derive(Clone, Debug)]
pub(crate) struct AddedBlock {
    /// The row of the request behind which it is made.
    pub(crate) behind: usize,
    pub(crate) block: ScheduledBlock,
    pub(crate) size: Bytes,
    pub(crate) stream: StreamId,
}

/// The origin of a scheduled block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A block of the profile.
    Recorded(BlockId),
    /// A rule added it to an operator.
    Added {
        /// The operator of the CPU trace.
        op: OpId,
        /// The time of its allocation.
        at: Nanos,
    },
    /// A rule added it; no operator of the trace made it.
    Unseen {
        /// The time of its allocation.
        at: Nanos,
    },
    /// It was there before the trace began.
    Preexisting,
}

/// The place of a block in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlace {
    /// Innermost operator of the CPU trace at the allocation.
    pub op: Option<OpId>,
    /// Module path; empty where unknown.
    pub module: Sym,
    /// Python line; empty where unknown.
    pub line: Sym,
    /// Iteration of the allocation; `None` before the first.
    pub iteration: Option<IterationId>,
    /// Phase of the allocation.
    pub phase: Phase,
}

impl Origin {
    /// The block of the profile, if it is one.
    #[must_use]
    pub const fn recorded(self) -> Option<BlockId> {
        match self {
            Self::Recorded(block) => Some(block),
            _ => None,
        }
    }

    /// The place in the program, looked up in the profile that the schedule was made of. What a rule
    /// added has the module and the line of the first block of its operator.
    #[must_use]
    pub fn place(self, profile: &Profile) -> BlockPlace {
        let (op, at) = match self {
            Self::Recorded(block) => {
                let block = profile.block(block);
                return BlockPlace {
                    op: block.op,
                    module: block.module,
                    line: block.line,
                    iteration: block.iteration,
                    phase: block.phase,
                };
            }
            Self::Added { op, at } => (Some(op), Some(at)),
            Self::Unseen { at } => (None, Some(at)),
            Self::Preexisting => (None, None),
        };
        let span = at.and_then(|at| profile.phase_at(at));
        let neighbor = op.and_then(|op| {
            let near = profile.blocks_between(profile.op_start(op), profile.op_end(op));
            profile.blocks.get(near.start)
        });
        BlockPlace {
            op,
            module: neighbor.map_or(Sym::EMPTY, |b| b.module),
            line: neighbor.map_or(Sym::EMPTY, |b| b.line),
            iteration: span.and_then(|s| s.iteration),
            phase: span.map_or(Phase::Init, |s| s.phase),
        }
    }
}

impl Schedule {
    /// The first `count` requests as a workload of an allocator.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn workload(&self, count: usize) -> Workload<'_> {
        Workload::new(&self.requests[..count], &self.fallbacks).with_calls(&self.calls)
    }

    /// The first request of each iteration of the profile that the schedule was made of.
    #[must_use]
    pub fn iteration_starts(&self, profile: &Profile) -> Vec<usize> {
        let start = |time| self.times.partition_point(|&at| at < time);
        profile.iterations.iter().map(|iteration| start(iteration.start)).collect()
    }

    /// The first request behind the recorded iterations, if what follows them is in the schedule.
    #[must_use]
    pub fn rest_start(&self, profile: &Profile) -> Option<usize> {
        let rest = profile.rest.filter(|_| self.has_rest)?;
        Some(self.times.partition_point(|&at| at < rest.time))
    }

    /// Adds blocks that stay until the end, in the order of the requests behind which they are made.
    pub(crate) fn add(&mut self, added: Vec<AddedBlock>) {
        let mut all = added.iter().peekable();
        let (requests, times) =
            (std::mem::take(&mut self.requests), std::mem::take(&mut self.times));
        // The new row of each request, and of their end.
        let mut rows = Vec::with_capacity(requests.len() + 1);
        for (row, (request, time)) in requests.into_iter().zip(times).enumerate() {
            rows.push(self.requests.len());
            self.requests.push(request);
            self.times.push(time);
            while let Some(next) = all.next_if(|next| next.behind == row) {
                let block = BlockId::new(self.blocks.len());
                self.blocks.push(next.block.clone());
                let kind = RequestKind::Alloc { size: next.size, stream: next.stream };
                self.requests.push(Request { block, kind });
                self.times.push(time);
            }
        }
        rows.push(self.requests.len());
        for call in &mut self.calls {
            call.before = rows[call.before];
        }
        self.move_uncertain(&rows);
    }

    /// Moves blocks that are not expected with the requests, whose new rows these are; the last one is that of their end.
    pub(crate) fn move_uncertain(&mut self, rows: &[usize]) {
        for block in &mut self.uncertain {
            if let UncertainPlace::Between { alloc, free } = &mut block.place {
                *alloc = rows[*alloc];
                *free = free.map(|row| rows[row].max(*alloc));
            }
        }
    }

    /// The block behind an id.
    #[must_use]
    pub fn block(&self, id: BlockId) -> &ScheduledBlock {
        &self.blocks[id.index()]
    }

    /// The place of a block in the program, looked up in the profile that the schedule was made of.
    #[must_use]
    pub fn place(&self, profile: &Profile, id: BlockId) -> BlockPlace {
        self.block(id).origin.place(profile)
    }
}
