//! The framework level: what every framework's allocator offers to the replay, and PyTorch's.

mod arena;
mod caching;
mod event;
mod pool;
mod sizes;
mod stats;

pub use caching::CachingAllocator;
pub use event::{Event, EventAction, Observer};
pub use stats::{PerPool, Stat, Stats};

use crate::device::Device;
use std::fmt;
use xmem_types::{Addr, Bytes, StreamId};

/// The position of a request in its list, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestIndex(pub usize);

impl fmt::Display for RequestIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A block that an allocator handed out and that was not freed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockHandle(pub(crate) u32);

impl BlockHandle {
    /// The handle of the block in `slot` of an allocator's own table.
    ///
    /// # Panics
    /// For the last three numbers, which stand for "no block" in the replay.
    #[must_use]
    pub fn new(slot: u32) -> Self {
        assert!(slot < u32::MAX - 2, "more than 2^32 - 3 blocks at a time");
        Self(slot)
    }

    /// The slot in the allocator's own table.
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.0
    }
}

/// A segment: one range that an allocator got from the device. Numbered in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

impl SegmentId {
    /// The segment's row in [`FrameworkAllocator::segments`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which of PyTorch's two pools a size belongs to (`BlockPool::is_small`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolKind {
    /// Rounded sizes up to `kSmallSize`.
    Small,
    /// All above.
    Large,
}

/// A block as it was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockView {
    /// Where it is.
    pub addr: Addr,
    /// What it occupies: the request, rounded, and any rest too small to be split off.
    pub size: Bytes,
    /// What the program asked for.
    pub requested: Bytes,
    /// The segment it lies in.
    pub segment: SegmentId,
    /// The stream it was asked for.
    pub stream: StreamId,
    /// The request that it answers.
    pub born: RequestIndex,
}

/// A range that the allocator got from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it starts.
    pub addr: Addr,
    /// Its size as asked of the device.
    pub size: Bytes,
    /// The stream whose requests it serves.
    pub stream: StreamId,
    /// The pool it belongs to.
    pub pool: PoolKind,
    /// The request that made the allocator ask for it.
    pub born: RequestIndex,
    /// The request during which it was given back, if it was.
    pub died: Option<RequestIndex>,
}

/// A part of a segment, handed out or free: together they cover the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInSegment {
    /// Where it starts.
    pub addr: Addr,
    /// Its size.
    pub size: Bytes,
    /// What the program asked for; `None` if the block is free.
    pub requested: Option<Bytes>,
    /// The segment it lies in.
    pub segment: SegmentId,
}

/// Why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocFailure {
    /// The device is full, even after everything cached was given back.
    OutOfMemory(OutOfDeviceMemory),
    /// The size is 2^60 bytes or more; refused without touching any state
    /// (`NativeCachingAllocator::allocate`).
    TooLarge,
}

/// An allocation that failed for lack of device memory (`OutOfMemoryError`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfDeviceMemory {
    /// What was asked for, rounded to a block size: the size in PyTorch's `oom` trace entry.
    pub rounded: Bytes,
    /// The segment asked of the device: "Tried to allocate" in PyTorch's message.
    pub tried: Bytes,
}

/// A framework's choice of allocator: what makes one over an empty device.
///
/// [`replay`](crate::replay) and [`min_capacity`](crate::min_capacity) take any of them; a replay
/// may need several, one for each capacity tried.
pub trait Framework {
    /// The allocator that is made.
    type Allocator: FrameworkAllocator;

    /// An allocator without segments over `device`.
    fn over(&self, device: Device) -> Self::Allocator;
}

/// What the replay needs of a framework's allocator. It owns the [`Device`] below it.
pub trait FrameworkAllocator {
    /// Hands out a block of at least `size`; `None` for a size of zero, which is a null pointer.
    ///
    /// # Errors
    /// If the device does not have the memory, or the size is absurd.
    fn allocate(
        &mut self,
        at: RequestIndex,
        size: Bytes,
        stream: StreamId,
    ) -> Result<Option<BlockHandle>, AllocFailure>;

    /// Takes a block back. The handle is void afterwards.
    fn free(&mut self, at: RequestIndex, block: BlockHandle);

    /// Gives everything unused back to the device (`torch.cuda.empty_cache`).
    fn release_cached(&mut self, at: RequestIndex);

    /// A block that is handed out.
    fn block(&self, block: BlockHandle) -> BlockView;

    /// Every segment ever made, in order of creation.
    fn segments(&self) -> &[Segment];

    /// Every block of every segment, handed out or free, by address.
    fn layout(&self) -> Vec<BlockInSegment>;

    /// The bytes of all blocks handed out.
    fn allocated(&self) -> Bytes;

    /// The bytes of all segments.
    fn reserved(&self) -> Bytes;

    /// The largest block that could be handed out without asking the device.
    fn largest_free(&self) -> Bytes;

    /// All statistics.
    fn stats(&self) -> Stats;

    /// The device below.
    fn device(&self) -> &Device;

    /// The device below, to lift its limit.
    fn device_mut(&mut self) -> &mut Device;
}
