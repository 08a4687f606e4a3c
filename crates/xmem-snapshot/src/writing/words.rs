//! The texts that a snapshot's layout consists of: keys, and names of states and actions.

use crate::pickle::MemoIndex;

macro_rules! words {
    ($($name:ident = $text:literal,)*) => {
        /// A text of the layout.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Word {
            $($name,)*
        }

        impl Word {
            /// The number of them.
            pub(super) const COUNT: usize = [$(Self::$name,)*].len();

            /// As it stands in the file.
            pub(super) const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

words! {
    Segments = "segments",
    DeviceTraces = "device_traces",
    AllocatorSettings = "allocator_settings",
    ExternalAnnotations = "external_annotations",

    Device = "device",
    Address = "address",
    TotalSize = "total_size",
    AllocatedSize = "allocated_size",
    ActiveSize = "active_size",
    RequestedSize = "requested_size",
    Stream = "stream",
    SegmentType = "segment_type",
    SegmentPoolId = "segment_pool_id",
    IsExpandable = "is_expandable",
    Frames = "frames",
    Blocks = "blocks",
    Small = "small",
    Large = "large",

    Size = "size",
    State = "state",
    ActiveAllocated = "active_allocated",
    ActivePendingFree = "active_pending_free",
    Inactive = "inactive",

    Action = "action",
    Addr = "addr",
    DeviceFree = "device_free",
    TimeUs = "time_us",
    CompileContext = "compile_context",
    UserMetadata = "user_metadata",
    SegmentAlloc = "segment_alloc",
    SegmentFree = "segment_free",
    SegmentMap = "segment_map",
    SegmentUnmap = "segment_unmap",
    Alloc = "alloc",
    FreeRequested = "free_requested",
    FreeCompleted = "free_completed",
    Oom = "oom",
    Snapshot = "snapshot",
    Annotate = "annotate",

    Stage = "stage",
    Start = "START",
    End = "END",
    Name = "name",
    Filename = "filename",
    Line = "line",

    AllocConf = "PYTORCH_CUDA_ALLOC_CONF",
    MaxSplitSize = "max_split_size",
    GarbageCollectionThreshold = "garbage_collection_threshold",
    ExpandableSegments = "expandable_segments",
    RoundupPower2Divisions = "roundup_power2_divisions",
}

impl Word {
    /// The memo index that is kept free for it: below 256, so that a mention takes two bytes.
    pub(super) const fn memo(self) -> MemoIndex {
        const { assert!(Word::COUNT <= 256) };
        MemoIndex::new(self as u32)
    }
}
