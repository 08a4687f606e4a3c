//! Two levels of GPU memory management, simulated exactly: a framework's caching allocator
//! (PyTorch's CUDACachingAllocator, or TensorFlow's BFCAllocator) over a device allocator
//! (cudaMalloc with a capacity).
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
//! A [`Session`] drives one allocator step by step, with everything else that a program can do to
//! it: streams, private pools, a memory fraction, releasing cached memory.
//!
//! Operations and options that are *not* simulated are refused, never ignored: [`AllocConf::parse`]
//! says so for options, [`FrameworkAllocator::control`] for operations.
#![forbid(unsafe_code)]

mod allocator;
mod bfc;
mod choice;
mod config;
mod device;
mod plain;
mod replay;
mod session;

pub use allocator::{
    AllocFailure, BlockHandle, BlockState, BlockUse, BlockView, CachingAllocator, Control, Event,
    EventAction, Framework, FrameworkAllocator, Mapping, Observer, OutOfDeviceMemory, PerPool,
    PoolKind, PoolOptions, PoolService, PrivatePoolId, RequestIndex, Seed, SeedError, SeededBlocks,
    Segment, SegmentId, SegmentState, Splitting, Stat, Stats, Unsupported,
};
pub use bfc::{BfcAllocator, BfcConfig, BfcStats, MemoryLimit};
pub use choice::{AllocatorChoice, ChosenAllocator};
pub use config::{
    AddressOrder, AllocConf, AllocatorConfig, Backend, Completion, ConfError, DeviceConfig,
    Feature, KnownOption, OnExcess, PowerOfTwoDivisions, Reserve, alloc_conf_options,
    alloc_conf_variables, newest_release, oldest_release, switches_caching_off,
};
pub use device::{Device, DeviceFull};
pub use plain::{MallocAsync, MallocAsyncAllocator, Uncached, UncachedAllocator};
pub use replay::{
    Curve, CurveBucket, Fragmentation, LiveBlock, OutOfMemory, Outline, Peak, Replay, ReplayDriver,
    SegmentAtPeak, Served, UnlimitedPeaks, min_capacity, outline, replay, runs_in,
};
pub use session::{Misuse, Operation, Outcome, Session};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
