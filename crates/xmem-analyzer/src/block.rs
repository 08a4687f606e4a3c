//! A block of memory and what is known about it.

use crate::lifetime::{Lifetime, Origin, Tick};
use crate::python::Frame;
use crate::spans::{Phase, PhaseSpan};
use xmem_types::{Addr, Bytes, IterationId, Nanos, OpId, PrivatePoolId, StreamId, Sym, ThreadIdx};

/// The role of a block in the training job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
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
    /// Memory that the optimizer keeps between steps.
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

/// The place of a block of a CPU recording if the job ran on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Residency {
    /// Made on the host and moved to the GPU with the model (`model.to(device)`): parameters and
    /// buffers.
    Model,
    /// Made on the host and copied to the GPU for training: batch data.
    Batch,
    /// Made on the GPU by the computation itself.
    Device,
    /// Stays on the host: data sets, loader intermediates, optimizer step counters, initialization
    /// temporaries.
    HostOnly,
}

impl Residency {
    /// The name in reports (`host_only`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Batch => "batch",
            Self::Device => "device",
            Self::HostOnly => "host_only",
        }
    }
}

/// The reason why a block has its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Evidence(pub &'static str);

/// One allocation, from its request to its free.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Block {
    /// Requested bytes; of a GPU's trace, those of the block.
    pub size: Bytes,
    /// Address in the recording process.
    pub address: Addr,
    /// Thread that allocated.
    pub thread: ThreadIdx,
    /// Position of the allocation.
    pub alloc: Tick,
    /// Time of the allocation.
    pub alloc_time: Nanos,
    /// Position of the free; none if the trace ends first.
    pub free: Option<Tick>,
    /// Time of the free.
    pub free_time: Option<Nanos>,
    /// The stream that it was allocated on, where that is recorded.
    pub stream: StreamId,
    /// The private pool that it was allocated from, where that is recorded; none for the default pool.
    pub pool: Option<PrivatePoolId>,
    /// The position before which its free was complete, if that waited for other streams.
    pub completed: Option<Tick>,
    /// Innermost operator at the allocation.
    pub op: Option<OpId>,
    /// Innermost operator at the free.
    pub freed_in: Option<OpId>,
    /// Module path at the allocation (`GPT2_0 > Block_3 > Attention_0`); for backward, that of the
    /// forward operator; for a parameter or buffer that a recording names, its name
    /// (`layer1.0.conv1.weight`). Empty where unknown.
    pub module: Sym,
    /// Innermost Python line of the user's or the library's code; empty where unknown.
    pub line: Sym,
    /// Iteration of the allocation; none during init.
    pub iteration: Option<IterationId>,
    /// Phase of the allocation.
    pub phase: Phase,
    /// Its role.
    pub role: Role,
    /// Its place if the job ran on a GPU.
    pub residency: Residency,
    /// The reason for this role and residency.
    pub evidence: Evidence,
}

impl Block {
    /// A block whose role is not decided yet; without a span it belongs to init.
    pub(crate) fn undecided(
        lifetime: Lifetime,
        origin: Origin,
        frame: Frame,
        span: Option<&PhaseSpan>,
    ) -> Self {
        let Lifetime { size, address, thread, alloc, alloc_time, free, free_time } = lifetime;
        let Origin { op, freed_in } = origin;
        Self {
            size,
            address,
            thread,
            alloc,
            alloc_time,
            free,
            free_time,
            stream: StreamId(0),
            pool: None,
            completed: None,
            op,
            freed_in,
            module: frame.module,
            line: frame.line,
            iteration: span.and_then(|s| s.iteration),
            phase: span.map_or(Phase::Init, |s| s.phase),
            role: Role::Unknown,
            residency: Residency::Device,
            evidence: Evidence(""),
        }
    }

    /// Returns whether the block is alive just after `time`.
    #[must_use]
    pub fn alive_at(&self, time: Nanos) -> bool {
        self.alloc_time <= time && self.lasts_beyond(time)
    }

    /// Returns whether the block is not yet freed just after `time`.
    #[must_use]
    pub fn lasts_beyond(&self, time: Nanos) -> bool {
        self.free_time.is_none_or(|f| f > time)
    }

    pub(crate) fn decide(&mut self, role: Role, residency: Residency, evidence: &'static str) {
        (self.role, self.residency, self.evidence) = (role, residency, Evidence(evidence));
    }
}
