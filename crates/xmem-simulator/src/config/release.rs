//! The differences between PyTorch releases, as data: each feature with the release that brought
//! it.

use xmem_types::TorchVersion;

/// Something that the allocator does only from one release on.
///
/// Sources: the allocator's files in the releases 1.13.1, 2.6.0 and a main branch of the 2.15 era,
/// and the headers and strings of the wheels in between; what lies between two releases that were
/// read completely is marked *inferred*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// `backend:` chooses between the caching allocator and `cudaMallocAsync`.
    Backend,
    /// `roundup_power2_divisions` may differ by size (list form).
    DivisionsBySize,
    /// `expandable_segments`.
    ExpandableSegments,
    /// `release_lock_on_cudamalloc`, `pinned_use_cuda_host_register` and
    /// `pinned_num_register_threads`: host-side options.
    PinnedOptions,
    /// `pinned_use_background_threads`.
    PinnedBackgroundThreads,
    /// `max_non_split_rounding_mb`; before, the slack is always 20 MiB.
    MaxNonSplitRounding,
    /// During a capture, emptying the cache releases what unused private pools hold; before,
    /// nothing.
    /// *Recorded* with 2.6 and 2.8.
    ReleaseDuringCapture,
    /// `graph_capture_record_stream_reuse`.
    GraphCaptureReuse,
    /// `per_process_memory_fraction`, `PYTORCH_ALLOC_CONF`, `pinned_reserve_segment_size_mb`:
    /// options moved to `AcceleratorAllocatorConfig`, with other limits of their values.
    AcceleratorConfig,
    /// A memory fraction is a part of `totalGlobalMem`, and limits only below 1.0; before, it is a
    /// part of what `cudaMemGetInfo` reports as total, and 1.0 is a limit too. *Recorded* with 2.9
    /// and 2.10.
    FractionBelowOne,
    /// `>` in a list of divisions starts behind the last listed size; before, it overwrites that
    /// one too. *Recorded* with 2.9 and 2.10.
    FillBehindLastSize,
    /// `large_segment_size_mb`.
    LargeSegmentSize,
    /// Pools made with `use_on_oom` are asked before cached memory is released; before, after
    /// that. *Inferred* from recordings of 2.11 and the file as it was around 2.9.
    LastResortBeforeRelease,
    /// Of pools made with `use_on_oom`, expandable segments do not serve others; before, they do.
    /// *Recorded* with 2.9 and 2.10.
    LastResortOverlooksExpandable,
    /// `throw_on_cudamalloc_oom`, `pinned_free_catch_all`.
    RefuseBeyondFraction,
    /// `pinned_max_round_threshold_mb`, `pinned_max_cached_size_mb`.
    PinnedCacheLimits,
    /// Of nested scopes of private pools, the innermost decides; before, the outermost. *Recorded*
    /// with 2.9 and 2.10.
    InnermostScope,
    /// Of free blocks of the same size, the one made first is taken; before, the one with the
    /// lowest address. *Recorded* with 2.11 and 2.12.
    OldestBlockFirst,
    /// Of free blocks of the same size, the one in the oldest segment is taken. *Recorded* with
    /// 2.12 and 2.13.
    OldestSegmentFirst,
    /// In the scope of a `MemPool`, and on streams that do not capture, events are queried and
    /// cached memory is released as usual; before, any scope counts as a capture. *Recorded* with
    /// 2.12 and 2.13.
    ScopesAreNoCaptures,
    /// The memory that a fraction allows is rounded to the nearest byte; before, down. *Recorded*
    /// with 2.12 and 2.13.
    FractionRounded,
    /// `expandable_segments_reserve` and `expandable_segments_reserve_by_class`.
    ExpandableReserve,
}

impl Feature {
    /// The release that brought it.
    #[must_use]
    pub const fn since(self) -> TorchVersion {
        let minor = match self {
            Self::Backend | Self::DivisionsBySize => 0,
            Self::ExpandableSegments => 1,
            Self::PinnedOptions => 2,
            Self::MaxNonSplitRounding | Self::PinnedBackgroundThreads => 6,
            Self::ReleaseDuringCapture => 8,
            Self::GraphCaptureReuse => 9,
            Self::AcceleratorConfig
            | Self::FractionBelowOne
            | Self::FillBehindLastSize
            | Self::InnermostScope
            | Self::LastResortOverlooksExpandable => 10,
            Self::LargeSegmentSize | Self::LastResortBeforeRelease => 11,
            Self::RefuseBeyondFraction | Self::OldestBlockFirst => 12,
            Self::PinnedCacheLimits
            | Self::OldestSegmentFirst
            | Self::ScopesAreNoCaptures
            | Self::FractionRounded => 13,
            Self::ExpandableReserve => 15,
        };
        TorchVersion::new(2, minor)
    }

    /// Returns whether `release` has it.
    #[must_use]
    pub fn is_in(self, release: TorchVersion) -> bool {
        release >= self.since()
    }
}

/// The oldest release whose allocator is known here.
#[must_use]
pub const fn oldest_release() -> TorchVersion {
    TorchVersion::new(1, 13)
}

/// The newest release whose allocator is known here; later ones are taken to be like it.
#[must_use]
pub const fn newest_release() -> TorchVersion {
    TorchVersion::new(2, 15)
}
