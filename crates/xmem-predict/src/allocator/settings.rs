//! The caller's settings.

use xmem_simulator::AddressOrder;
use xmem_types::TorchVersion;

/// The caller's wishes about the allocator. What is left out is decided by the input, if it says
/// anything about it, and else by PyTorch's defaults: see
/// [`resolve`](AllocatorSettings::resolve).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllocatorSettings {
    /// The allocator; by default the one that the options choose.
    pub kind: Option<AllocatorKind>,
    /// The PyTorch release whose allocator it is.
    pub release: Option<TorchVersion>,
    /// Options in the syntax of `PYTORCH_CUDA_ALLOC_CONF`. An empty string means none, whatever
    /// the input says.
    pub conf: Option<String>,
    /// `torch.cuda.set_per_process_memory_fraction`, called when the program starts.
    pub memory_fraction: Option<f64>,
    /// The order in which new segments get their addresses.
    pub address_order: Option<AddressOrder>,
}

/// The allocators that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocatorKind {
    /// PyTorch's caching allocator.
    Native,
    /// PyTorch with `PYTORCH_NO_CUDA_MEMORY_CACHING`.
    Uncached,
    /// PyTorch with `backend:cudaMallocAsync`, approximately.
    MallocAsync,
    /// TensorFlow's allocator, which takes nearly all memory with the first request.
    Bfc,
    /// TensorFlow's allocator with `allow_growth`.
    BfcGrowth,
}

impl AllocatorKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Native, Self::Uncached, Self::MallocAsync, Self::Bfc, Self::BfcGrowth];

    /// The name on the command line and in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Uncached => "uncached",
            Self::MallocAsync => "cudaMallocAsync",
            Self::Bfc => "tf-bfc",
            Self::BfcGrowth => "tf-bfc-growth",
        }
    }

    /// Returns whether it is TensorFlow's.
    #[must_use]
    pub const fn is_tensorflow(self) -> bool {
        matches!(self, Self::Bfc | Self::BfcGrowth)
    }

    /// Returns whether its inner workings are not published, so that figures are approximate.
    #[must_use]
    pub const fn is_approximate(self) -> bool {
        matches!(self, Self::MallocAsync)
    }
}
