//! The memory of a job at its peak in the categories of DNNMem, and the estimate that DNNMem compares itself with.
//!
//! Gao et al., "Estimating GPU Memory Consumption of Deep Learning Models", ESEC/FSE 2020, sections 4.2 to 4.5 and 5.

use super::dnnmem::DnnMemTensor;
use super::iteration::{Life, largest_load};
use std::ops::Range;
use xmem_analyzer::{Phase, Role};
use xmem_predict::Prediction;
use xmem_types::Bytes;

/// Peaks of all requests, on a device with enough memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPeaks {
    /// Bytes of blocks handed out.
    pub allocated: Bytes,
    /// Bytes of segments.
    pub reserved: Bytes,
}

/// The memory of a job at the peak of its live blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakdown {
    /// The categories that have bytes.
    pub shares: Vec<BreakdownShare>,
    /// DNNMem's baseline "shape inference", without gradients, workspaces, rounding and context.
    pub shape_inference: ShapeInference,
    /// What DNNMem's estimate is made of: the tensors of an iteration.
    pub(super) tensors: Vec<DnnMemTensor>,
    /// What others than the allocator take.
    pub(super) context: Bytes,
}

/// Input, weights and forward outputs of one iteration. The paper does not say which of the outputs count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeInference {
    /// With the outputs that backward needs.
    pub saved_outputs: Bytes,
    /// With all outputs of forward operators.
    pub all_outputs: Bytes,
}

/// The bytes of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakdownShare {
    /// The category.
    pub category: DnnMemCategory,
    /// Its bytes.
    pub bytes: Bytes,
}

/// Reserved memory by the classes of DNNMem's breakdown, at the peak of live blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryClasses {
    /// Bytes that the program requested.
    pub live: Bytes,
    /// Bytes by which blocks are larger (internal fragmentation).
    pub rounding: Bytes,
    /// Reserved memory that holds no block.
    pub reservation: Bytes,
}

/// The categories of DNNMem, and two kinds of memory that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DnnMemCategory {
    /// Parameters and buffers.
    Weights,
    /// Gradients of parameters.
    WeightGradients,
    /// Batches.
    Input,
    /// What forward operators make and backward needs.
    ForwardOutput,
    /// What backward operators make, other than gradients of parameters.
    OutputGradient,
    /// Scratch memory of libraries.
    Workspace,
    /// What is born and gone within one phase other than backward.
    Temporary,
    /// State of the optimizer: DNNMem has none.
    OptimizerState,
    /// Blocks whose role is not known: DNNMem has none.
    Unknown,
    /// Bytes by which blocks are larger than requested.
    Rounding,
    /// Reserved memory that holds no block.
    Reservation,
    /// The CUDA context.
    Context,
}

impl DnnMemCategory {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Weights,
        Self::WeightGradients,
        Self::Input,
        Self::ForwardOutput,
        Self::OutputGradient,
        Self::Workspace,
        Self::Temporary,
        Self::OptimizerState,
        Self::Unknown,
        Self::Rounding,
        Self::Reservation,
        Self::Context,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::WeightGradients => "weight_gradients",
            Self::Input => "input",
            Self::ForwardOutput => "forward_output",
            Self::OutputGradient => "output_gradient",
            Self::Workspace => "workspace",
            Self::Temporary => "temporary",
            Self::OptimizerState => "optimizer_state",
            Self::Unknown => "unknown",
            Self::Rounding => "rounding",
            Self::Reservation => "reservation",
            Self::Context => "context",
        }
    }

    /// Returns whether it consists of tensors of an iteration that DNNMem knows.
    #[must_use]
    pub(super) const fn is_of_tensors(self) -> bool {
        self.is_of_dnnmem() && !matches!(self, Self::Rounding | Self::Reservation | Self::Context)
    }

    /// Returns whether DNNMem has the category.
    #[must_use]
    pub const fn is_of_dnnmem(self) -> bool {
        !matches!(self, Self::OptimizerState | Self::Unknown)
    }

    /// The category of a block.
    const fn of(role: Role, phase: Phase) -> Self {
        match (role, phase) {
            (Role::Parameter | Role::Buffer, _) => Self::Weights,
            (Role::Gradient, _) => Self::WeightGradients,
            (Role::Input, _) => Self::Input,
            (Role::OptimizerState, _) => Self::OptimizerState,
            (Role::Workspace, _) => Self::Workspace,
            (Role::Activation | Role::Temporary, Phase::Backward) => Self::OutputGradient,
            (Role::Activation, _) => Self::ForwardOutput,
            (Role::Temporary, _) => Self::Temporary,
            _ => Self::Unknown,
        }
    }
}

/// The phase in which a block is made.
fn phase(prediction: &Prediction<'_>, life: &Life) -> Phase {
    prediction.block(life.block).phase
}

impl Breakdown {
    /// The breakdown of a job; `window` are the requests of an iteration.
    pub(super) fn of_prediction(
        prediction: &Prediction<'_>,
        lives: &[Life],
        window: &Range<usize>,
        job: JobPeaks,
    ) -> Self {
        let category = |life: &Life| {
            DnnMemCategory::of(prediction.block(life.block).role, phase(prediction, life))
        };
        let (at, load) = largest_load(lives.iter());
        let live = || lives.iter().filter(|life| life.is_live_after(at));
        let bytes = |of: DnnMemCategory| match of {
            DnnMemCategory::Rounding => live().map(|life| life.size - life.requested).sum(),
            // Remainders of segments that are too small to be split off are reserved for their block alone.
            DnnMemCategory::Reservation => job.reserved.saturating_sub(load),
            DnnMemCategory::Context => prediction.device().taken,
            of => live().filter(|life| category(life) == of).map(|life| life.requested).sum(),
        };
        let share = |category| BreakdownShare { category, bytes: bytes(category) };
        let shares = DnnMemCategory::ALL.into_iter().map(share);
        Self {
            shares: shares.filter(|share| share.bytes.get() > 0).collect(),
            shape_inference: ShapeInference::of(prediction, lives, window, category),
            tensors: DnnMemTensor::of_window(lives, window, category),
            context: prediction.device().taken,
        }
    }

    /// The memory without the context, by class.
    #[must_use]
    pub fn classes(&self) -> MemoryClasses {
        let mut classes =
            MemoryClasses { live: Bytes::ZERO, rounding: Bytes::ZERO, reservation: Bytes::ZERO };
        for &BreakdownShare { category, bytes } in &self.shares {
            match category {
                DnnMemCategory::Rounding => classes.rounding += bytes,
                DnnMemCategory::Reservation => classes.reservation += bytes,
                DnnMemCategory::Context => {}
                _ => classes.live += bytes,
            }
        }
        classes
    }

    /// The sum of all categories.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.shares.iter().map(|share| share.bytes).sum()
    }
}

impl ShapeInference {
    /// Weights and input that are live in the window, and what the forward pass makes in it.
    fn of(
        prediction: &Prediction<'_>,
        lives: &[Life],
        window: &Range<usize>,
        category: impl Fn(&Life) -> DnnMemCategory,
    ) -> Self {
        let is_of_forward =
            |life: &Life| window.contains(&life.born) && phase(prediction, life) == Phase::Forward;
        let sum = |with_temporaries: bool| {
            let counts = |life: &&Life| match category(life) {
                DnnMemCategory::Weights => life.is_live_after(window.end.saturating_sub(1)),
                DnnMemCategory::Input => window.contains(&life.born),
                DnnMemCategory::ForwardOutput => is_of_forward(life),
                DnnMemCategory::Temporary => with_temporaries && is_of_forward(life),
                _ => false,
            };
            lives.iter().filter(counts).map(|life| life.requested).sum()
        };
        Self { saved_outputs: sum(false), all_outputs: sum(true) }
    }
}
