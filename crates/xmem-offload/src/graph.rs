//! One training step: layers, the work of the device in order, and blocks with their uses.

use std::collections::BTreeSet;
use std::fmt;
use thiserror::Error;
use xmem_types::{BlockId, Bytes, Nanos, typed_id};

typed_id!(
    /// A layer of a [`Graph`], in the order in which the forward pass executes them.
    LayerId
);
typed_id!(
    /// A step of the device's work in a [`Graph`].
    StepId
);

/// The kind of a layer, as far as policies distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LayerKind {
    /// A convolution.
    Conv,
    /// A pooling layer.
    Pool,
    /// An activation function.
    Act,
    /// A normalization.
    Norm,
    /// A fully connected layer, or another matrix product.
    Fc,
    /// A softmax, or a loss with one.
    Softmax,
    /// A dropout.
    Dropout,
    /// Attention of a Transformer: its projections, and what is between them.
    Attention,
    /// The layers of a Transformer that treat each position by itself, with their activation functions.
    Mlp,
    /// A layer with several inputs: an addition, a concatenation.
    Join,
    /// Anything else.
    Other,
}

impl LayerKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Conv,
        Self::Pool,
        Self::Act,
        Self::Norm,
        Self::Fc,
        Self::Softmax,
        Self::Dropout,
        Self::Attention,
        Self::Mlp,
        Self::Join,
        Self::Other,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conv => "conv",
            Self::Pool => "pool",
            Self::Act => "act",
            Self::Norm => "norm",
            Self::Fc => "fc",
            Self::Softmax => "softmax",
            Self::Dropout => "dropout",
            Self::Attention => "attention",
            Self::Mlp => "mlp",
            Self::Join => "join",
            Self::Other => "other",
        }
    }

    /// True for the layers that take most of the time, by which policies measure how far they look ahead: in the papers
    /// convolutions, and in Transformers attention and MLP, which take their place.
    #[must_use]
    pub(crate) const fn bounds_window(self) -> bool {
        matches!(self, Self::Conv | Self::Attention | Self::Mlp)
    }
}

impl fmt::Display for LayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its name in reports.
    pub name: String,
    /// Its kind.
    pub kind: LayerKind,
    /// The layers whose outputs it reads.
    pub inputs: Vec<LayerId>,
}

/// A part of the work of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The forward pass of a layer.
    Forward(LayerId),
    /// A part of the backward pass of a layer.
    Backward(LayerId),
    /// A part of the optimizer's step.
    Optimizer,
    /// Anything else, as gradients that are accumulated.
    Other,
}

impl Work {
    /// The layer it belongs to.
    #[must_use]
    pub const fn layer(self) -> Option<LayerId> {
        match self {
            Self::Forward(layer) | Self::Backward(layer) => Some(layer),
            Self::Optimizer | Self::Other => None,
        }
    }
}

/// A step of the device's work, with the requests of its memory in program order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphStep {
    /// The work.
    pub work: Work,
    /// The time that the device computes.
    pub duration: Nanos,
    /// Requests. Those up to the last allocation happen when the step begins, frees after it when it ends.
    pub actions: Vec<Action>,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A block is allocated.
    Alloc(BlockId),
    /// A block is freed.
    Free(BlockId),
}

/// The part that a block plays for policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockRole {
    /// A tensor that is computed in the step.
    Data,
    /// A parameter or a buffer of the model.
    Persistent,
    /// The gradient of a parameter.
    Gradient,
    /// State of the optimizer.
    OptimizerState,
    /// Memory that a convolution uses while it runs.
    Workspace,
}

/// A block and its uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepBlock {
    /// Its size, rounded as the device's allocator rounds it.
    pub size: Bytes,
    /// Its part.
    pub role: BlockRole,
    /// The steps of the forward pass that write it, ascending.
    pub writers: Vec<StepId>,
    /// The steps of the forward pass that read it, ascending.
    pub readers: Vec<StepId>,
    /// The steps of the backward pass that need what the forward pass wrote, ascending.
    pub backward: Vec<StepId>,
}

/// One training step. Blocks are numbered from 0, in no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    layers: Vec<Layer>,
    steps: Vec<GraphStep>,
    blocks: Vec<StepBlock>,
    lifetimes: Vec<Lifetime>,
    /// The steps that are slower than those of the device's work were: each is slowed down once.
    slowed: BTreeSet<StepId>,
}

/// The steps that allocate and free a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    pub(crate) alloc: StepId,
    pub(crate) free: Option<StepId>,
}

/// The reason why layers, steps and blocks make no graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A step requests something that makes no sense.
    #[error("step {step} allocates or frees block {block}, which is not possible at that point")]
    Request {
        /// The step.
        step: usize,
        /// The block.
        block: usize,
    },
    /// A block is used when it is not there, or by a step that does not exist.
    #[error("block {block} is used by step {step}, and is not allocated at that point")]
    Use {
        /// The step.
        step: usize,
        /// The block.
        block: usize,
    },
    /// A block is never allocated.
    #[error("block {block} is never allocated")]
    Never {
        /// The block.
        block: usize,
    },
    /// The blocks are larger than any memory.
    #[error("the blocks have more than 2^60 bytes")]
    TooLarge,
    /// A duration is negative.
    #[error("step {step} has a negative duration")]
    Duration {
        /// The step.
        step: usize,
    },
    /// A step belongs to a layer that does not exist.
    #[error("step {step} belongs to a layer that does not exist")]
    Layer {
        /// The step.
        step: usize,
    },
}

impl Graph {
    /// The graph of these layers, steps and blocks.
    ///
    /// # Errors
    /// If requests or uses do not go together.
    pub fn new(
        layers: Vec<Layer>,
        steps: Vec<GraphStep>,
        blocks: Vec<StepBlock>,
    ) -> Result<Self, GraphError> {
        check_size(&blocks)?;
        let lifetimes = lifetimes(&steps, blocks.len())?;
        for (row, step) in steps.iter().enumerate() {
            if step.duration < Nanos::ZERO {
                return Err(GraphError::Duration { step: row });
            }
            if step.work.layer().is_some_and(|layer| layer.index() >= layers.len()) {
                return Err(GraphError::Layer { step: row });
            }
        }
        for (row, (block, lifetime)) in blocks.iter().zip(&lifetimes).enumerate() {
            let uses = block.writers.iter().chain(&block.readers).chain(&block.backward);
            for &step in uses {
                let is_there = lifetime.alloc <= step && lifetime.free.is_none_or(|f| step <= f);
                if !is_there || step.index() >= steps.len() {
                    return Err(GraphError::Use { step: step.index(), block: row });
                }
            }
        }
        Ok(Self { layers, steps, blocks, lifetimes, slowed: BTreeSet::new() })
    }

    /// The layers, in the order of the forward pass.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The work of the device, in order.
    #[must_use]
    pub fn steps(&self) -> &[GraphStep] {
        &self.steps
    }

    /// The blocks, by id.
    #[must_use]
    pub fn blocks(&self) -> &[StepBlock] {
        &self.blocks
    }

    /// A block.
    #[must_use]
    pub fn block(&self, id: BlockId) -> &StepBlock {
        &self.blocks[id.index()]
    }

    /// The ids of the blocks.
    pub fn ids(&self) -> impl Iterator<Item = BlockId> + use<> {
        (0..self.blocks.len()).map(BlockId::new)
    }

    /// The kind of the layer that a step belongs to.
    #[must_use]
    pub fn kind(&self, step: StepId) -> Option<LayerKind> {
        let layer = self.steps[step.index()].work.layer()?;
        Some(self.layers[layer.index()].kind)
    }

    /// The time that the device computes in all.
    #[must_use]
    pub fn compute(&self) -> Nanos {
        self.steps.iter().map(|step| step.duration).sum()
    }

    /// The same step with blocks of other sizes.
    pub(crate) fn resized(&self, size: impl Fn(BlockId, &StepBlock) -> Bytes) -> Self {
        let mut graph = self.clone();
        for (id, block) in self.ids().zip(&mut graph.blocks) {
            block.size = size(id, self.block(id));
        }
        graph
    }

    /// A step takes so many times as long, if it was not slowed down before.
    pub(crate) fn slow_down(&mut self, step: StepId, times: f64) {
        if self.slowed.insert(step) {
            let duration = &mut self.steps[step.index()].duration;
            *duration = Nanos((duration.get() as f64 * times) as i64);
        }
    }

    /// Refuses blocks that are larger than any memory.
    pub(crate) fn check_size(&self) -> Result<(), GraphError> {
        check_size(&self.blocks)
    }

    /// The same step with other durations.
    ///
    /// # Errors
    /// If one is negative.
    pub fn with_durations(
        mut self,
        duration: impl Fn(StepId) -> Nanos,
    ) -> Result<Self, GraphError> {
        for (row, step) in self.steps.iter_mut().enumerate() {
            step.duration = duration(StepId::new(row));
            if step.duration < Nanos::ZERO {
                return Err(GraphError::Duration { step: row });
            }
        }
        Ok(self)
    }

    pub(crate) fn lifetime(&self, id: BlockId) -> Lifetime {
        self.lifetimes[id.index()]
    }

    pub(crate) fn into_parts(self) -> (Vec<Layer>, Vec<GraphStep>, Vec<StepBlock>) {
        (self.layers, self.steps, self.blocks)
    }
}

impl GraphStep {
    /// The requests when the step begins, and those when it ends.
    pub(crate) fn halves(&self) -> (&[Action], &[Action]) {
        let last = self.actions.iter().rposition(|action| matches!(action, Action::Alloc(_)));
        self.actions.split_at(last.map_or(0, |last| last + 1))
    }
}

fn check_size(blocks: &[StepBlock]) -> Result<(), GraphError> {
    // Each may be there twice, before and after it is on the host.
    let total: u128 = blocks.iter().map(|block| 2 * u128::from(block.size.get())).sum();
    if total > 1 << 60 { Err(GraphError::TooLarge) } else { Ok(()) }
}

fn lifetimes(steps: &[GraphStep], blocks: usize) -> Result<Vec<Lifetime>, GraphError> {
    let mut lifetimes: Vec<Option<Lifetime>> = vec![None; blocks];
    for (row, step) in steps.iter().enumerate() {
        for &action in &step.actions {
            let (Action::Alloc(block) | Action::Free(block)) = action;
            let error = GraphError::Request { step: row, block: block.index() };
            let lifetime = lifetimes.get_mut(block.index()).ok_or(error.clone())?;
            match (action, lifetime) {
                (Action::Alloc(_), new @ None) => {
                    *new = Some(Lifetime { alloc: StepId::new(row), free: None });
                }
                (Action::Free(_), Some(Lifetime { free: free @ None, .. })) => {
                    *free = Some(StepId::new(row));
                }
                _ => return Err(error),
            }
        }
    }
    let lifetimes = lifetimes.into_iter().enumerate();
    lifetimes.map(|(block, lifetime)| lifetime.ok_or(GraphError::Never { block })).collect()
}
