//! What the analysis of a trace yields.

use crate::args::{ArgumentTable, Arguments};
use crate::optree::OpTree;
use xmem_trace::{OpKind, Trace};
use xmem_types::{Addr, BlockId, Bytes, IterationId, Nanos, OpId, Sym, ThreadIdx};

/// A position in the time order of the analysed device's memory events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u32);

/// What a block is to the training job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A model parameter.
    Parameter,
    /// A tensor of the model that has no gradient (running statistics, position tables).
    Buffer,
    /// Batch data.
    Input,
    /// A forward result that lives until backward needs it.
    Activation,
    /// A parameter's gradient.
    Gradient,
    /// What the optimizer keeps between steps.
    OptimizerState,
    /// Born and gone within one phase.
    Temporary,
    /// Scratch memory of a library (cuBLAS, cuDNN).
    Workspace,
    /// None of the above could be shown.
    Unknown,
}

impl Role {
    /// Every role, in the order of reports.
    pub const ALL: [Self; 9] = [
        Self::Parameter,
        Self::Buffer,
        Self::Gradient,
        Self::OptimizerState,
        Self::Activation,
        Self::Input,
        Self::Temporary,
        Self::Workspace,
        Self::Unknown,
    ];

    /// The name in reports (`optimizer_state`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parameter => "parameter",
            Self::Buffer => "buffer",
            Self::Input => "input",
            Self::Activation => "activation",
            Self::Gradient => "gradient",
            Self::OptimizerState => "optimizer_state",
            Self::Temporary => "temporary",
            Self::Workspace => "workspace",
            Self::Unknown => "unknown",
        }
    }
}

/// A part of a training iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Before the first iteration: model and optimizer are built.
    Init,
    /// A batch is loaded.
    Data,
    /// The model and the loss run.
    Forward,
    /// Autograd runs.
    Backward,
    /// Gradients are cleared.
    ZeroGrad,
    /// The optimizer runs.
    OptimizerStep,
}

impl Phase {
    /// The name in reports (`optimizer_step`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Data => "data",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::ZeroGrad => "zero_grad",
            Self::OptimizerStep => "optimizer_step",
        }
    }
}

/// A stretch of time in one phase. Spans do not overlap and are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Start, inclusive.
    pub start: Nanos,
    /// End, exclusive.
    pub end: Nanos,
    /// The phase.
    pub phase: Phase,
    /// The iteration it belongs to; none during init.
    pub iteration: Option<IterationId>,
    /// The annotation that marks it (optimizer step, zero_grad), if one does.
    pub mark: Option<OpId>,
}

/// A training (or inference) iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// Start, inclusive.
    pub start: Nanos,
    /// End, exclusive.
    pub end: Nanos,
}

/// Why a block has its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Evidence(pub &'static str);

/// One allocation, from its request to its free.
#[derive(Clone, Debug)]
pub struct Block {
    /// Requested bytes.
    pub size: Bytes,
    /// Address in the recording process.
    pub address: Addr,
    /// Thread that allocated.
    pub thread: ThreadIdx,
    /// When it was allocated.
    pub alloc: Tick,
    /// When it was allocated, as time.
    pub alloc_time: Nanos,
    /// When it was freed; none if the trace ends first.
    pub free: Option<Tick>,
    /// When it was freed, as time.
    pub free_time: Option<Nanos>,
    /// Innermost operator at the allocation.
    pub op: Option<OpId>,
    /// Innermost operator at the free.
    pub freed_in: Option<OpId>,
    /// Module path at the allocation (`GPT2_0 > Block_3 > Attention_0`); for backward, that of the
    /// forward operator. Empty where unknown.
    pub module: Sym,
    /// Innermost Python line of the user's or the library's code; empty where unknown.
    pub line: Sym,
    /// Iteration of the allocation; none during init.
    pub iteration: Option<IterationId>,
    /// Phase of the allocation.
    pub phase: Phase,
    /// What it is.
    pub role: Role,
    /// Why.
    pub evidence: Evidence,
}

impl Block {
    pub(crate) fn new(
        size: Bytes,
        address: Addr,
        thread: ThreadIdx,
        alloc: Tick,
        alloc_time: Nanos,
    ) -> Self {
        Self {
            size,
            address,
            thread,
            alloc,
            alloc_time,
            free: None,
            free_time: None,
            op: None,
            freed_in: None,
            module: Sym::EMPTY,
            line: Sym::EMPTY,
            iteration: None,
            phase: Phase::Init,
            role: Role::Unknown,
            evidence: Evidence(""),
        }
    }

    /// Whether the block is alive just after `time`.
    #[must_use]
    pub fn alive_at(&self, time: Nanos) -> bool {
        self.alloc_time <= time && self.free_time.is_none_or(|f| f > time)
    }
}

/// A trace, understood: blocks with lifetime, origin and role, and the structure of the run.
#[derive(Clone, Debug)]
pub struct Profile {
    /// In order of allocation.
    pub blocks: Vec<Block>,
    /// Which operator encloses which.
    pub tree: OpTree,
    /// Phases in order of time.
    pub phases: Vec<PhaseSpan>,
    /// Iterations in order of time.
    pub iterations: Vec<Iteration>,
    /// Autograd links, by operator row.
    pub autograd: crate::autograd::Autograd,
    pub(crate) arguments: ArgumentTable,
    pub(crate) trace: Trace,
}

impl Profile {
    /// The block with this id.
    #[must_use]
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// The text of a symbol.
    #[must_use]
    pub fn text(&self, sym: Sym) -> &str {
        self.trace.strings.resolve(sym)
    }

    /// The symbol of a text, if the trace has it.
    #[must_use]
    pub fn symbol(&self, text: &str) -> Option<Sym> {
        self.trace.strings.get(text)
    }

    /// Every distinct string of the trace.
    pub fn symbols(&self) -> impl Iterator<Item = (Sym, &str)> {
        self.trace.strings.iter()
    }

    /// Number of operators and annotations.
    #[must_use]
    pub fn op_count(&self) -> usize {
        self.trace.ops.len()
    }

    /// An operator's name.
    #[must_use]
    pub fn op_name(&self, op: OpId) -> &str {
        self.text(self.trace.ops.name[op.index()])
    }

    /// An operator's name as a symbol.
    #[must_use]
    pub fn op_symbol(&self, op: OpId) -> Sym {
        self.trace.ops.name[op.index()]
    }

    /// Whether the row is an annotation rather than an operator.
    #[must_use]
    pub fn is_annotation(&self, op: OpId) -> bool {
        self.trace.ops.kind[op.index()] == OpKind::Annotation
    }

    /// When an operator starts.
    #[must_use]
    pub fn op_start(&self, op: OpId) -> Nanos {
        self.trace.ops.start[op.index()]
    }

    /// When an operator ends.
    #[must_use]
    pub fn op_end(&self, op: OpId) -> Nanos {
        self.trace.ops.start[op.index()] + self.trace.ops.duration[op.index()]
    }

    /// The thread an operator ran on.
    #[must_use]
    pub fn op_thread(&self, op: OpId) -> ThreadIdx {
        self.trace.ops.thread[op.index()]
    }

    /// An operator's autograd sequence number.
    #[must_use]
    pub fn op_sequence(&self, op: OpId) -> Option<i64> {
        Some(self.trace.ops.sequence[op.index()]).filter(|&s| s >= 0)
    }

    /// An operator's recorded arguments; empty where shapes were not recorded.
    #[must_use]
    pub fn arguments(&self, op: OpId) -> &Arguments {
        self.arguments.get(self.trace.ops.signature[op.index()])
    }

    /// The phase at a time, and its span.
    #[must_use]
    pub fn phase_at(&self, time: Nanos) -> Option<&PhaseSpan> {
        let i = self.phases.partition_point(|p| p.start <= time);
        i.checked_sub(1).map(|i| &self.phases[i])
    }

    /// Indices of the blocks whose allocation lies in `[start, end]`.
    #[must_use]
    pub fn blocks_between(&self, start: Nanos, end: Nanos) -> std::ops::Range<usize> {
        let from = self.blocks.partition_point(|b| b.alloc_time < start);
        let to = self.blocks.partition_point(|b| b.alloc_time <= end);
        from..to
    }
}
