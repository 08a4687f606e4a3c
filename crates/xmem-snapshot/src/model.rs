//! The content of a snapshot, in types.

use crate::{AllocatorSettings, FrameTable, StackId};
use xmem_types::{Addr, Bytes, Interner, Nanos, StreamId, Sym};

/// A memory snapshot: the allocator's state at one moment, and what led to it.
///
/// Two snapshots are equal if they say the same, in whatever order their tables came to be.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Segments of all devices, in the order of the file (by device, then by address).
    pub segments: Vec<Segment>,
    /// Per device, what happened, oldest first. Empty before PyTorch 2.0 or without
    /// `_record_memory_history`; only the newest entries if its `max_entries` was reached. The
    /// memory_viz page offers the devices that have a list here, be it empty.
    pub device_traces: Vec<Vec<TraceEntry>>,
    /// The settings of the allocator; `None` before PyTorch 2.0.
    pub allocator_settings: Option<AllocatorSettings>,
    /// `record_function` scopes while history was on; since PyTorch 2.5.
    pub annotations: Vec<Annotation>,
    /// The stream behind each [`StreamId`]; the default stream is always the first.
    pub streams: Vec<StreamHandle>,
    /// Call stacks.
    pub frames: FrameTable,
    /// Texts of frames, entries and annotations.
    pub strings: Interner,
}

/// A CUDA device, as the recording process numbered it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceIndex(pub u32);

/// The value of a `cudaStream_t`: an address, or 0 for the default stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamHandle(pub u64);

/// The memory pool of a segment (`MempoolId_t` of c10/cuda/CUDAGraphsC10Utils.h); (0, 0) is the
/// default pool, others belong to CUDA graphs or `torch.cuda.MemPool`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u64, pub u64);

/// The pool that a segment serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// Requests up to 1 MiB.
    Small,
    /// Larger requests.
    Large,
}

/// Memory that the allocator holds from the device: one `cudaMalloc`, or one contiguous mapped
/// range of an expandable segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The device it is on.
    pub device: DeviceIndex,
    /// The start address.
    pub address: Addr,
    /// Its length.
    pub total: Bytes,
    /// In blocks that the program holds.
    pub allocated: Bytes,
    /// Those, and in blocks that are freed but still used by another stream.
    pub active: Bytes,
    /// The size that the program requested in its active blocks; since PyTorch 2.0.
    pub requested: Option<Bytes>,
    /// The stream it serves.
    pub stream: StreamId,
    /// Small or large requests.
    pub kind: SegmentKind,
    /// Its pool; the default one before PyTorch 2.1.
    pub pool: PoolId,
    /// True if it is part of an expandable segment; never before PyTorch 2.1.
    pub expandable: bool,
    /// The call stack of the allocation.
    pub stack: StackId,
    /// Its blocks, by address.
    pub blocks: Vec<SnapshotBlock>,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotBlock {
    /// The start address.
    pub address: Addr,
    /// Its length, rounded as the allocator does.
    pub size: Bytes,
    /// The size that the program requested; meaningless for inactive blocks, absent before PyTorch
    /// 2.0.
    pub requested: Option<Bytes>,
    /// The use of the block.
    pub state: BlockState,
    /// The call stack of the allocation.
    pub stack: StackId,
}

/// The use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// The program holds it.
    ActiveAllocated,
    /// Freed, but another stream has yet to finish with it.
    ActivePendingFree,
    /// Cached for reuse.
    Inactive,
}

/// Position of an entry in its device's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryIndex(pub u32);

/// One thing that the allocator did (`TraceEntry` in c10/cuda/CUDACachingAllocator.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// The action.
    pub action: Action,
    /// The block or segment; 0 for [`Action::OutOfMemory`].
    pub addr: Addr,
    /// Requested bytes for blocks (not rounded), real ones for segments.
    pub size: Bytes,
    /// The stream it was for.
    pub stream: StreamId,
    /// When, since the Unix epoch, exact to the microsecond; since PyTorch 2.2.
    pub time: Option<Nanos>,
    /// The call stack.
    pub stack: StackId,
    /// The compilation it happened in (`compile_context`); empty where there is none.
    pub compile_context: Sym,
    /// A text that the program attached (`user_metadata`); empty where there is none.
    pub user_metadata: Sym,
}

/// An action of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Got a segment from the device.
    SegmentAlloc,
    /// Gave a segment back to the device.
    SegmentFree,
    /// Mapped pages into an expandable segment.
    SegmentMap,
    /// Unmapped pages of an expandable segment.
    SegmentUnmap,
    /// Gave a block to the program.
    Alloc,
    /// The program gave a block back.
    FreeRequested,
    /// The block can be reused: at once, or when all streams that used it are done.
    FreeCompleted,
    /// Could not serve a request, even after releasing cached segments.
    OutOfMemory {
        /// The free memory of the device.
        device_free: Bytes,
    },
    /// Was told to take a snapshot.
    Snapshot,
    /// Attached a text to a block.
    Annotate,
    /// Something that a newer PyTorch does; its name.
    Other(Sym),
}

/// Begin or end of a scope of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The stage.
    pub stage: AnnotationStage,
    /// The scope's name.
    pub name: Sym,
    /// The device that was current.
    pub device: DeviceIndex,
    /// When, since the Unix epoch, exact to the microsecond.
    pub time: Option<Nanos>,
}

/// The end of a scope that an annotation marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnnotationStage {
    /// It begins.
    Start,
    /// It ends.
    End,
}
