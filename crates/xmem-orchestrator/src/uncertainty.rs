//! Sizes that are not known for sure, and their bounds.

use xmem_types::{BlockId, Bytes};

/// A named reason why a size is not known for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Uncertainty {
    /// The algorithm that cuDNN takes for a convolution, if the library was not asked.
    ConvolutionPlan,
    /// The plan that is the fastest of those that `torch.backends.cudnn.benchmark` tries.
    ConvolutionBenchmark,
    /// The memory of a library that does not document it, like cuDNN's recurrent layers.
    Library,
    /// The scratch of an operator without a CUDA model: there is neither a rule for it nor evidence
    /// that it needs none.
    Operator,
}

impl Uncertainty {
    /// Every uncertainty, in the order of reports.
    pub const ALL: [Self; 4] =
        [Self::ConvolutionPlan, Self::ConvolutionBenchmark, Self::Library, Self::Operator];

    /// The name in reports (`convolution_plan`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConvolutionPlan => "convolution_plan",
            Self::ConvolutionBenchmark => "convolution_benchmark",
            Self::Library => "library",
            Self::Operator => "operator",
        }
    }
}

/// The sizes that a block may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The least.
    pub low: Bytes,
    /// The most.
    pub high: Bytes,
    /// The reason why it is not known.
    pub cause: Uncertainty,
}

/// A block whose size is not known for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncertainBlock {
    /// The bounds of its size.
    pub range: SizeRange,
    /// Its place in the schedule.
    pub place: UncertainPlace,
}

/// The place of an uncertain block in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncertainPlace {
    /// It is one of the blocks.
    Block(BlockId),
    /// The block is not expected at all. If it exists, it is allocated just before one request and
    /// freed just before another.
    Between {
        /// The request it is allocated before.
        alloc: usize,
        /// The request it is freed before; `None` if it stays.
        free: Option<usize>,
    },
}

/// One end of the possible sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Everything uncertain is as small as it may be.
    Low,
    /// Everything uncertain is as large as it may be.
    High,
}

impl SizeRange {
    /// One end of it.
    #[must_use]
    pub const fn at(&self, bound: Bound) -> Bytes {
        match bound {
            Bound::Low => self.low,
            Bound::High => self.high,
        }
    }
}
