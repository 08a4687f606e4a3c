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

impl Plans {
    /// No plan: PyTorch takes a kernel of its own, or none is to be assumed.
    #[must_use]
    pub const fn none() -> Self {
        let zero = Bytes::ZERO;
        Self { sizes: Vec::new(), low: zero, high: zero, basis: Basis::NotCudnn }
    }

    /// The workspace while memory is ample.
    #[must_use]
    pub fn first(&self) -> Bytes {
        self.sizes.first().copied().unwrap_or(Bytes::ZERO)
    }
}
