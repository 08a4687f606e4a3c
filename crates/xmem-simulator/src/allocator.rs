//! The framework level: what every framework's allocator offers to the replay, and PyTorch's.

mod caching;
mod event;
mod state;

pub(crate) use caching::Counter;
pub use caching::{CachingAllocator, PerPool, Seed, SeedError, SeededBlocks, Stat, Stats};
pub use event::{Event, EventAction, Observer};
pub use state::{BlockState, BlockUse, Mapping, Segment, SegmentState};

use crate::device::Device;
use std::fmt;
use xmem_types::{Addr, BlockId, Bytes, StreamId};

pub use xmem_types::PrivatePoolId;

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

/// One of PyTorch's two pools, by size (`BlockPool::is_small`).
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
    /// The address.
    pub addr: Addr,
    /// The bytes that it occupies: the request, rounded, and any rest too small to be split off.
    pub size: Bytes,
    /// The size that the program requested.
    pub requested: Bytes,
    /// The segment it lies in.
    pub segment: SegmentId,
    /// The stream it was requested on.
    pub stream: StreamId,
    /// The request that it answers.
    pub born: RequestIndex,
}

/// The arguments of `torch.cuda.MemPool`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolOptions {
    /// The splitting of its blocks.
    pub splitting: Splitting,
    /// The allocations that it serves besides those of its own scopes.
    pub service: PoolService,
}

/// The splitting of a pool's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Splitting {
    /// As usual.
    #[default]
    Usual,
    /// Never (`no_split=True`, since 2.10).
    Never,
}

/// Whom a private pool serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolService {
    /// Allocations in its scopes.
    #[default]
    Scopes,
    /// Also others, rather than running out of memory (`use_on_oom=True`, since 2.8).
    LastResort,
}

/// An operation of a program on an allocator besides allocations and frees. Not every allocator
/// supports all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Another stream uses the block too (`Tensor.record_stream`): it cannot be reused before the
    /// device is done with that stream's work at the time of the free.
    RecordStream {
        /// The block.
        block: BlockHandle,
        /// The other stream.
        stream: StreamId,
    },
    /// The program waits for the device (`torch.cuda.synchronize`).
    Synchronize,
    /// `torch.cuda.set_per_process_memory_fraction`.
    MemoryFraction(f64),
    /// `torch.cuda.reset_peak_memory_stats`.
    ResetPeaks,
    /// Enters `torch.cuda.use_mem_pool`; the pool is made if it is new.
    EnterPool {
        /// The pool.
        pool: PrivatePoolId,
        /// The options of the `MemPool`, if it is new.
        options: PoolOptions,
    },
    /// Begins to capture a CUDA graph: allocations on `stream` go to its pool.
    BeginCapture {
        /// The graph's pool, which graphs can share.
        pool: PrivatePoolId,
        /// The capturing stream.
        stream: StreamId,
    },
    /// Leaves the pool's `use_mem_pool`, or ends its capture.
    LeavePool(PrivatePoolId),
    /// The `MemPool` or the graph is deleted.
    ReleasePool(PrivatePoolId),
    /// The free of a block, which is to come, waits for other streams until [`Complete`](Self::Complete), or
    /// until the allocator waits for the device. The number is the caller's.
    AwaitStreams {
        /// The block.
        block: BlockHandle,
        /// Its number.
        id: BlockId,
    },
    /// The device is done with a block that was freed and waits. Nothing happens if it does not.
    Complete(BlockId),
}

/// An allocator cannot do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// It knows nothing like it.
    ByThisAllocator,
    /// The pool is not in use at the moment.
    NoOpenScope(PrivatePoolId),
    /// There is no such pool, or it is no longer used.
    NoSuchPool(PrivatePoolId),
}

/// The reason why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocFailure {
    /// The device is full, even after everything cached was released.
    OutOfMemory(OutOfDeviceMemory),
    /// The size is 2^60 bytes or more; refused without touching any state
    /// (`NativeCachingAllocator::allocate`).
    TooLarge,
}

/// An allocation that failed for lack of device memory (`OutOfMemoryError`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfDeviceMemory {
    /// The requested size, rounded to a block size: the size in PyTorch's `oom` trace entry.
    pub rounded: Bytes,
    /// The segment requested from the device: "Tried to allocate" in PyTorch's message.
    pub tried: Bytes,
}

/// A framework's choice of allocator: what makes one over an empty device.
///
/// Replays take any of them; one replay may need several allocators, one for each capacity tried.
pub trait Framework {
    /// The allocator that is made.
    type Allocator<O: Observer>: FrameworkAllocator<Observer = O>;

    /// An allocator without segments over `device`, whose events `observer` hears.
    fn over<O: Observer>(&self, device: Device, observer: O) -> Self::Allocator<O>;
}

/// A framework's allocator, as replays use it. It owns the [`Device`] below it.
pub trait FrameworkAllocator {
    /// Who hears its events.
    type Observer: Observer;

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

    /// Does what only some allocators can do.
    ///
    /// # Errors
    /// If this one cannot.
    fn control(&mut self, _at: RequestIndex, _control: Control) -> Result<(), Unsupported> {
        Err(Unsupported::ByThisAllocator)
    }

    /// A block that is handed out.
    fn block(&self, block: BlockHandle) -> BlockView;

    /// Every segment ever made, in order of creation.
    fn segments(&self) -> &[Segment];

    /// Every mapping of memory into expandable segments, in order.
    fn mappings(&self) -> &[Mapping] {
        &[]
    }

    /// Every segment as it is now, by address, with its blocks.
    fn state(&self) -> Vec<SegmentState>;

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

    /// The device below, to change its limit.
    fn device_mut(&mut self) -> &mut Device;

    /// From here on nothing is limited: neither the device nor, where the allocator has a limit of
    /// its own, what it may take of the device.
    fn lift_limit(&mut self) {
        self.device_mut().lift_limit();
    }

    /// Who hears the events.
    fn observer(&self) -> &Self::Observer;

    /// Who hears the events, to take what was heard.
    fn observer_mut(&mut self) -> &mut Self::Observer;
}
