//! TensorFlow's GPU allocator, best fit with coalescing: a second framework behind the interface
//! that PyTorch's serves.
//!
//! `BFCAllocator` (`bfc_allocator.cc`, in `tensorflow/core/common_runtime` up to TensorFlow 2.7,
//! then in `tsl/framework`, now `xla/tsl/framework`) as `GPUBFCAllocator` sets it up: sizes are
//! rounded to 256 bytes; the smallest free chunk that is large enough is taken, and split where
//! half of it or 128 MiB would be wasted; what is freed merges with its neighbors; memory comes
//! from the device in regions, all of it at once or in steps that double; regions go back only when
//! a request would fail otherwise.
//!
//! There is one pool for all sizes and all streams: TensorFlow computes on one stream, and requests
//! for others are served from the same chunks.
//!
//! Not simulated: the wait of up to ten seconds for another thread to free memory
//! (`AllocatorRetry`; a replay has one thread), chunks held back until the device has passed a
//! point in time (`SetTimingCounter`, off by default), and `TF_GPU_ALLOCATOR`'s other allocators.

mod allocator;
mod chunks;
mod config;
mod framework;
mod stats;

pub use allocator::BfcAllocator;
pub use config::{BfcConfig, MemoryLimit};
pub use stats::BfcStats;
