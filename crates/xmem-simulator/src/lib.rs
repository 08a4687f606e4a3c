//! Two levels of GPU memory management, simulated exactly: a framework's caching allocator
//! (PyTorch's CUDACachingAllocator) over a device allocator (cudaMalloc with a capacity).
//!
//! A list of requests goes in, a [`Replay`] comes out: every statistic that
//! `torch.cuda.memory_stats` would show, the two peaks with what was alive at them, the curve, and
//! whether the job ran out of memory. The simulator is pure: no clock, no files, no globals; the
//! same requests and configuration always give the same result. It knows nothing of operators,
//! traces or files.
//!
//! ```
//! use xmem_simulator::{AllocatorConfig, DeviceConfig, replay};
//! use xmem_types::{BlockId, Bytes, Request, RequestKind, StreamId};
//!
//! let alloc = |id, size| Request {
//!     block: BlockId(id),
//!     kind: RequestKind::Alloc { size, stream: StreamId(0) },
//! };
//! let requests = [alloc(0, Bytes::mib(5)), alloc(1, Bytes::mib(14))];
//! let replay = replay(&requests, &AllocatorConfig::default(), &DeviceConfig::default());
//! // The second request takes the 15 MiB left of the 20 MiB segment whole.
//! assert_eq!(replay.peak.allocated, Bytes::mib(20));
//! assert_eq!(replay.peak.reserved, Bytes::mib(20));
//! ```
//!
//! What is *not* simulated: frees deferred by `record_stream` (a free completes at once),
//! expandable segments, garbage collection, the per-process memory fraction, private pools
//! (CUDA graphs, `MemPool`) and the `cudaMallocAsync` backend. [`AllocatorConfig`] has no field for
//! any of them, so none can be asked for and silently ignored.
#![forbid(unsafe_code)]

mod allocator;
mod config;
mod device;
mod replay;

pub use allocator::{
    AllocFailure, BlockHandle, BlockInSegment, BlockView, CachingAllocator, Event, EventAction,
    Framework, FrameworkAllocator, Observer, OutOfDeviceMemory, PerPool, PoolKind, RequestIndex,
    Segment, SegmentId, Stat, Stats,
};
pub use config::{AddressOrder, AllocatorConfig, DeviceConfig, PowerOfTwoDivisions};
pub use device::{Device, DeviceFull};
pub use replay::{
    Curve, CurveBucket, Fragmentation, LiveBlock, OutOfMemory, Peak, Replay, SegmentAtPeak,
    UnlimitedPeaks, min_capacity, replay, runs_in,
};
