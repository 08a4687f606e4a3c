//! The plans that PyTorch tries for one convolution, as sizes of workspaces.

use xmem_types::Bytes;

/// The workspaces of a convolution's plans, and how certain they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plans {
    /// Sizes in the order in which PyTorch tries them, as requested from the allocator (before any
    /// rounding): the first is taken unless memory is short (`try_configs` in
    /// `aten/src/ATen/native/cudnn/Conv_v8.cpp` continues with the next plan when the allocation of
    /// the workspace fails). Empty where the convolution has no workspace at all.
    pub sizes: Vec<Bytes>,
    /// A lower bound of the first workspace. For the fitted model: a size that 19 of 20 tabulated
    /// convolutions of the same kind reach or exceed.
    pub low: Bytes,
    /// An upper bound of the first workspace. For the fitted model: a size that 19 of 20 tabulated
    /// convolutions of the same kind do not exceed. For a library: its answer, or the model's size if
    /// that is larger.
    pub high: Bytes,
    /// The origin of the sizes.
    pub basis: Basis,
    /// The trial before the choice, where PyTorch chooses by one
    /// ([`PlanChoice::Benchmark`](crate::PlanChoice::Benchmark)). The bounds above are then those of the
    /// plans that are timed: the fastest of them is taken.
    pub trial: Option<Trial>,
}

/// The trial of a convolution's plans: one workspace for all of them, at the first call of each shape.
///
/// As large as the largest that memory has room for (`generate_and_filter_plans` in
/// `aten/src/ATen/native/cudnn/Conv_v8.cpp`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// The workspaces of all plans, each size once, the largest first.
    pub sizes: Vec<Bytes>,
    /// A lower bound of the largest.
    pub low: Bytes,
    /// An upper bound of the largest.
    pub high: Bytes,
}

impl Trial {
    /// The trial of plans with these workspaces, in whatever order.
    #[must_use]
    pub fn of(plans: &[Bytes]) -> Self {
        let mut sizes = plans.to_vec();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.dedup();
        let largest = sizes.first().copied().unwrap_or_default();
        Self { sizes, low: largest, high: largest }
    }

    /// The largest workspace of a plan.
    #[must_use]
    pub fn largest(&self) -> Bytes {
        self.sizes.first().copied().unwrap_or_default()
    }
}

/// The origin of a convolution's [`Plans`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The answer of cuDNN itself.
    Library,
    /// A formula that all tabulated convolutions of the same kind follow (within 2 % or 64 KiB).
    Formula,
    /// A formula that only this percentage of them follows; the others lie between the bounds.
    Likely {
        /// Per cent, 0 to 99.
        percent: u8,
    },
    /// The formula of the nearest older device: the table lacks this one.
    OtherDevice,
    /// No workspace: the convolution does not reach cuDNN ([`ConvShape::uses_cudnn`](crate::ConvShape::uses_cudnn)).
    NotCudnn,
}

impl Basis {
    /// Returns whether a model of cuDNN gave the sizes.
    #[must_use]
    pub const fn is_modeled(self) -> bool {
        matches!(self, Self::Formula | Self::Likely { .. } | Self::OtherDevice)
    }
}

impl Plans {
    /// No plan: PyTorch takes a kernel of its own, or none is to be assumed.
    #[must_use]
    pub const fn none() -> Self {
        let zero = Bytes::ZERO;
        Self { sizes: Vec::new(), low: zero, high: zero, basis: Basis::NotCudnn, trial: None }
    }

    /// The workspace while memory is ample.
    #[must_use]
    pub fn first(&self) -> Bytes {
        self.sizes.first().copied().unwrap_or(Bytes::ZERO)
    }
}
