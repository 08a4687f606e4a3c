//! Sizes as PyTorch's allocators round them.

use xmem_types::Bytes;

/// The memory whose requests are planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlannedMemory {
    /// That of a GPU, which PyTorch's caching allocator rounds up to multiples of 512 bytes (`kMinBlockSize` in
    /// `c10/core/AllocatorConfig.h`).
    #[default]
    Gpu,
    /// That of the CPU, in which tensors begin at multiples of 64 bytes (`gAlignment` in `c10/core/alignment.h`).
    Cpu,
}

impl PlannedMemory {
    /// The unit of sizes and addresses.
    #[must_use]
    pub const fn unit(self) -> Bytes {
        match self {
            Self::Gpu => Bytes(512),
            Self::Cpu => Bytes(64),
        }
    }

    /// The size of a block for a request.
    pub(crate) const fn rounded(self, requested: Bytes) -> Bytes {
        requested.round_up(self.unit())
    }
}

/// The size of a block of PyTorch's allocator of the GPU for a request.
pub(crate) const fn rounded(requested: Bytes) -> Bytes {
    PlannedMemory::Gpu.rounded(requested)
}
