//! What the library counts (`native/planned.h`, `struct counters`), as the hook writes it.

use serde::{Deserialize, Serialize};

/// The counters of a process that followed a plan. Bytes are those of the GPU, or of the CPU's tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Counters {
    /// Requests for memory.
    pub requests: u64,
    /// Those that got their planned address.
    pub planned: u64,
    /// Those that the plan leaves to PyTorch's way of allocating.
    pub outside: u64,
    /// Those that the plan does not have.
    pub unknown: u64,
    /// Those whose planned address was in use.
    pub occupied: u64,
    /// Those of other streams than the plan's; on the CPU, of other threads.
    pub other_stream: u64,
    /// Those for whose planned address there was no memory.
    pub no_memory: u64,
    /// Iterations that have ended.
    pub iterations: u64,
    /// Plans that were made while the job ran, and taken.
    pub replans: u64,
    /// Units of memory that were given out twice; counted in debug mode.
    pub collisions: u64,
    /// Bytes of blocks that are in use.
    pub allocated: u64,
    /// The most of them.
    pub allocated_peak: u64,
    /// The most bytes that the arenas had together with the segments, or the C library's blocks.
    pub driver_peak: u64,
    /// The same since `torch.cuda.reset_peak_memory_stats`.
    pub reserved_peak: u64,
    /// Requests that were tried again after free memory was given back.
    pub retries: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Requests that the plan does not have, or whose planned address was in use, at another place in its memory.
    pub fitted: u64,
}

impl Counters {
    /// The requests that were to have an address of the plan, or are not in it.
    #[must_use]
    pub const fn misses(&self) -> u64 {
        self.unknown + self.occupied + self.other_stream + self.no_memory
    }
}
