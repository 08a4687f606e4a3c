//! Sizes that are not known for sure, and their bounds.

use xmem_convolutions::ConvPass;
use xmem_types::{BlockId, Bytes};

/// A named reason why a size is not known for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Uncertainty {
    /// The algorithm that cuDNN takes for a convolution, if the release that will run was not asked.
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
    /// The convolution whose workspace it is, where the release of cuDNN that will run was not asked: other
    /// releases may take other ones ([`WorkspaceFamily`]).
    pub unasked: Option<UnaskedConvolution>,
    /// The reason why it is not known.
    pub cause: Uncertainty,
}

/// A convolution about which the release of cuDNN that will run was not asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnaskedConvolution {
    /// Its pass.
    pub pass: ConvPass,
    /// Input, weight and output together.
    pub tensors: Bytes,
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

/// Sizes of what is uncertain, one end of what is possible or between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Everything uncertain is as small as it may be.
    Low,
    /// Everything uncertain is as large as it may be.
    High,
    /// The workspaces of convolutions whose release of cuDNN was not asked are of this family; all other sizes
    /// are as expected.
    Family(WorkspaceFamily),
}

/// Workspaces of all convolutions of a job as another release of cuDNN might choose them: multiples of their
/// tensors, up to a cap.
///
/// Readings of an RTX 3060, of jobs whose instructions install cuDNN 9.1, are 18 to 19 % above the estimate for four
/// MnasNets, as if gradients of weights took up to four times their tensors (github.com/Stone-ResearchLife/xMem,
/// `plot/data`).
///
/// The workspaces of cuDNN 9.19 are copies of the tensors and transforms of them: for 44 % of the convolutions
/// none, for a quarter at least as much as the tensors, at most 2.5 times that (233 plans of PyTorch's networks in
/// float32); transforms of small images may take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceFamily {
    /// The multiple of input, weight and output together: forward, gradient of the data, gradient of the weight.
    times: [u64; 3],
    /// No workspace is larger.
    cap: Bytes,
}

impl WorkspaceFamily {
    /// The families that a range covers.
    pub const ALL: [Self; 13] = [
        Self::uncapped([0, 0, 0]),
        Self::uncapped([1, 1, 1]),
        Self::uncapped([2, 2, 2]),
        Self::uncapped([3, 3, 3]),
        Self::uncapped([4, 4, 4]),
        Self::uncapped([0, 0, 1]),
        Self::uncapped([0, 0, 3]),
        Self::uncapped([0, 0, 4]),
        Self::uncapped([0, 2, 2]),
        Self::up_to(Bytes::mib(64), [4, 4, 4]),
        Self::up_to(Bytes::mib(128), [4, 4, 4]),
        Self::up_to(Bytes::mib(256), [4, 4, 4]),
        Self::up_to(Bytes::mib(96), [8, 8, 8]),
    ];

    const fn uncapped(times: [u64; 3]) -> Self {
        Self::up_to(Bytes(u64::MAX), times)
    }

    const fn up_to(cap: Bytes, times: [u64; 3]) -> Self {
        Self { times, cap }
    }

    /// The workspace of a convolution.
    #[must_use]
    pub fn workspace(&self, of: UnaskedConvolution) -> Bytes {
        let [forward, data, weight] = self.times;
        let times = match of.pass {
            ConvPass::Forward => forward,
            ConvPass::BackwardData => data,
            ConvPass::BackwardWeight => weight,
        };
        Bytes(of.tensors.get().saturating_mul(times)).min(self.cap)
    }
}

impl SizeRange {
    /// Sizes between two bounds.
    #[must_use]
    pub const fn new(low: Bytes, high: Bytes, cause: Uncertainty) -> Self {
        Self { low, high, unasked: None, cause }
    }

    /// The same for the workspace of a convolution about which the release that will run was not asked.
    #[must_use]
    pub const fn of_any_release(self, of: UnaskedConvolution) -> Self {
        Self { unasked: Some(of), ..self }
    }

    /// Returns whether there is only one size.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.low == self.high && self.unasked.is_none()
    }

    /// The size there; `None` if it is the expected one.
    #[must_use]
    pub fn at(&self, bound: Bound) -> Option<Bytes> {
        match bound {
            Bound::Low => Some(self.low),
            Bound::High => Some(self.high),
            Bound::Family(family) => self.unasked.map(|of| family.workspace(of)),
        }
    }
}
