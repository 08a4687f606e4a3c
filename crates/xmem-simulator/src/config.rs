//! What can be chosen: the allocator's constants and options, and the device below it.

use xmem_types::Bytes;

/// PyTorch's CUDACachingAllocator: its constants as data, and the options that are simulated.
///
/// `Default` is PyTorch's default; the constants are the same in every release from 1.13 to 2.15
/// (`c10/cuda/CUDACachingAllocator.cpp`, since 2.10 `c10/core/AllocatorConfig.h`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatorConfig {
    /// `kMinBlockSize`: sizes are rounded up to a multiple of this, and no block is smaller.
    pub min_block_size: Bytes,
    /// `kSmallSize`: a rounded size up to this comes from the small pool.
    pub small_size: Bytes,
    /// `kSmallBuffer`: segment size of the small pool.
    pub small_buffer: Bytes,
    /// `kLargeBuffer`, `large_segment_size_mb` since 2.11: segment size for rounded sizes above
    /// `small_size` and below `min_large_alloc`.
    pub large_buffer: Bytes,
    /// `kMinLargeAlloc`: a rounded size from this on gets a segment of its own size.
    pub min_large_alloc: Bytes,
    /// `kRoundLarge`: those segments are rounded up to a multiple of this.
    pub round_large: Bytes,
    /// `max_split_size_mb`: blocks from this size on are never split, nor given to smaller
    /// requests. `None` is unlimited.
    pub max_split_size: Option<Bytes>,
    /// `max_non_split_rounding_mb`: how much larger a reused block may be than a request that is
    /// itself at least `max_split_size`.
    pub max_non_split_rounding: Bytes,
    /// `roundup_power2_divisions`; off by default.
    pub roundup_power2_divisions: PowerOfTwoDivisions,
}

impl Default for AllocatorConfig {
    fn default() -> Self {
        Self {
            min_block_size: Bytes(512),
            small_size: Bytes::mib(1),
            small_buffer: Bytes::mib(2),
            large_buffer: Bytes::mib(20),
            min_large_alloc: Bytes::mib(10),
            round_large: Bytes::mib(2),
            max_split_size: None,
            max_non_split_rounding: Bytes::mib(20),
            roundup_power2_divisions: PowerOfTwoDivisions::OFF,
        }
    }
}

/// `roundup_power2_divisions`: into how many parts the span between two powers of two is divided
/// for rounding, one entry for each power of two from 1 MiB (which also serves everything below)
/// to 32 GiB (and everything above). 0 and 1 mean plain rounding.
///
/// `AcceleratorAllocatorConfig::roundup_power2_divisions` in `c10/core/AllocatorConfig.cpp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerOfTwoDivisions(pub [u32; 16]);

impl PowerOfTwoDivisions {
    /// Plain rounding for every size.
    pub const OFF: Self = Self([0; 16]);

    /// The divisions for a request of `size`.
    #[must_use]
    pub fn of(&self, size: Bytes) -> u32 {
        let log2 = size.get().max(1).ilog2();
        self.0[(log2.saturating_sub(20) as usize).min(15)]
    }
}

/// The order in which new segments get their addresses. It matters because the allocator's best
/// fit breaks ties between equal sizes by the lowest address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressOrder {
    /// As CUDA's driver was seen to do in public memory snapshots of real jobs: granules of 32 MiB
    /// from the top down; what a segment leaves of its last granule serves later segments that
    /// fit, lowest address first. See [`Device`](crate::Device) for ranges that were given back.
    #[default]
    Driver,
    /// The lowest free range that fits, from the bottom up.
    Ascending,
    /// The highest free range that fits, from the top down.
    Descending,
}

/// The device as the allocator sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Total device memory (`cudaDeviceProp::totalGlobalMem`); `None` means unlimited.
    pub capacity: Option<Bytes>,
    /// What the CUDA context and other processes hold; taken off the capacity.
    pub taken: Bytes,
    /// Where new segments land.
    pub address_order: AddressOrder,
}

impl DeviceConfig {
    /// What is left for the allocator: capacity less what is taken. `None` means unlimited.
    #[must_use]
    pub fn available(&self) -> Option<Bytes> {
        self.capacity.map(|capacity| capacity.saturating_sub(self.taken))
    }
}
