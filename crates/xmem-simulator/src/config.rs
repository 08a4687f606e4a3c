//! The configuration: the allocator's constants and options, and the device below it.

mod conf;
mod device;
mod divisions;
mod release;

pub use conf::{
    AllocConf, Backend, ConfError, KnownOption, alloc_conf_options, alloc_conf_variables,
    switches_caching_off,
};
pub use device::{AddressOrder, Completion, DeviceConfig};
pub use divisions::PowerOfTwoDivisions;
pub use release::{Feature, newest_release, oldest_release};

use xmem_types::{Bytes, TorchVersion};

/// PyTorch's CUDACachingAllocator: its constants as data, its options, and the release whose
/// behavior is simulated.
///
/// `Default` is PyTorch's default; the constants are the same in every release from 1.13 to 2.15
/// (`c10/cuda/CUDACachingAllocator.cpp`, since 2.10 `c10/core/AllocatorConfig.h`).
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatorConfig {
    /// The release: its differences are listed as [`Feature`].
    pub release: TorchVersion,
    /// `kMinBlockSize`: sizes are rounded up to a multiple of this, and no block is smaller.
    pub min_block_size: Bytes,
    /// `kSmallSize`: a rounded size up to this comes from the small pool.
    pub small_size: Bytes,
    /// `kSmallBuffer`: segment size of the small pool.
    pub small_buffer: Bytes,
    /// `kLargeBuffer`, `large_segment_size_mb` since 2.11: segment size for rounded sizes above
    /// `small_size` and below `min_large_alloc`, and page size of the large pool's expandable
    /// segments.
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
    /// `roundup_bypass_threshold_mb` of 1.13 and 2.0: sizes above it are rounded to whole blocks
    /// only, whatever `roundup_power2_divisions` says.
    pub roundup_bypass_threshold: Option<Bytes>,
    /// `expandable_segments`: one growing segment for each pool and stream, made of pages.
    pub expandable_segments: bool,
    /// `expandable_segments_reserve`: address space of each expandable segment, at most the
    /// device's total and an eighth more, which is also the default.
    pub expandable_reserve: Option<Reserve>,
    /// `garbage_collection_threshold`: the part of the memory limit above which cached segments
    /// are released before a new one is requested. Without a memory limit it does nothing.
    pub garbage_collection_threshold: Option<f64>,
    /// `per_process_memory_fraction`, `torch.cuda.set_per_process_memory_fraction`: the part of
    /// the device's memory that the allocator may take.
    pub memory_fraction: Option<f64>,
    /// `throw_on_cudamalloc_oom`: a segment that would exceed `memory_fraction` is refused at
    /// once, and nothing cached is released for it.
    pub on_excess: OnExcess,
}

/// Address space of an expandable segment (`expandable_segments_reserve`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reserve {
    /// A part of the device's total memory.
    PartOfTotal(f64),
    /// A size.
    Size(Bytes),
}

/// The reaction to a request that would exceed the process's memory fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExcess {
    /// Cached memory is released, and the request tried again.
    #[default]
    GiveBack,
    /// It fails at once (`throw_on_cudamalloc_oom:True`).
    Refuse,
}

impl Default for AllocatorConfig {
    fn default() -> Self {
        Self {
            release: TorchVersion::default(),
            min_block_size: Bytes(512),
            small_size: Bytes::mib(1),
            small_buffer: Bytes::mib(2),
            large_buffer: Bytes::mib(20),
            min_large_alloc: Bytes::mib(10),
            round_large: Bytes::mib(2),
            max_split_size: None,
            max_non_split_rounding: Bytes::mib(20),
            roundup_power2_divisions: PowerOfTwoDivisions::OFF,
            roundup_bypass_threshold: None,
            expandable_segments: false,
            expandable_reserve: None,
            garbage_collection_threshold: None,
            memory_fraction: None,
            on_excess: OnExcess::GiveBack,
        }
    }
}

impl AllocatorConfig {
    /// PyTorch's defaults in one release.
    #[must_use]
    pub fn of(release: TorchVersion) -> Self {
        Self { release, ..Self::default() }
    }

    /// Returns whether the order in which the device hands out addresses decides between free
    /// blocks of equal size: up to 2.11.
    #[must_use]
    pub fn depends_on_addresses(&self) -> bool {
        !Feature::OldestBlockFirst.is_in(self.release)
    }
}
