//! A question about a convolution.

use crate::shape::{ConvPass, ConvShape};

/// A convolution whose plans are of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConvolutionQuestion {
    /// The pass.
    pub pass: ConvPass,
    /// Sizes, element type and memory format.
    pub shape: ConvShape,
    /// The way in which PyTorch chooses the plan.
    pub choice: PlanChoice,
}

/// The way in which PyTorch chooses a convolution's plan (`run_single_conv` in
/// `aten/src/ATen/native/cudnn/Conv_v8.cpp`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlanChoice {
    /// The first one of the heuristics that fits.
    #[default]
    Heuristics,
    /// The fastest one in a trial (`torch.backends.cudnn.benchmark = True`).
    Benchmark {
        /// The number of plans that are timed; 0 is all of them
        /// (`torch.backends.cudnn.benchmark_limit`).
        limit: u32,
    },
}

impl PlanChoice {
    /// A trial with PyTorch's own limit (`benchmark_limit_cudnn` in `aten/src/ATen/Context.h`).
    pub const BENCHMARK: Self = Self::Benchmark { limit: 10 };
}

impl ConvolutionQuestion {
    /// A question about the plans of the heuristics.
    #[must_use]
    pub const fn new(pass: ConvPass, shape: ConvShape) -> Self {
        Self { pass, shape, choice: PlanChoice::Heuristics }
    }

    /// The same question where PyTorch chooses the plan in that way.
    #[must_use]
    pub const fn chosen_by(self, choice: PlanChoice) -> Self {
        Self { choice, ..self }
    }
}
