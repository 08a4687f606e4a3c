//! Allocations of which the program tries several sizes.

use crate::allocator::{AllocFailure, BlockHandle, FrameworkAllocator, RequestIndex};
use xmem_types::{BlockId, Bytes, FallbackId, Fallbacks, StreamId};

/// A program's allocations, some of which may be smaller if they must; remembers what it got.
///
/// As PyTorch does with the workspaces of convolutions (`aten/src/ATen/native/cudnn/Conv_v8.cpp`,
/// `run_single_conv`, `try_configs`): what worked last time is tried first, then everything from
/// the beginning. Each attempt that fails has released what is cached.
#[derive(Clone, Debug)]
pub(super) struct Attempts<'a> {
    fallbacks: &'a Fallbacks,
    /// For each list, what was got last; none where it was all that was requested.
    got: Vec<Option<Bytes>>,
    smaller: u64,
}

impl<'a> Attempts<'a> {
    /// A program that has not requested anything yet.
    pub(super) fn new(fallbacks: &'a Fallbacks) -> Self {
        Self { fallbacks, got: vec![None; fallbacks.len()], smaller: 0 }
    }

    /// The number of allocations that were served with less than was requested first.
    pub(super) const fn smaller(&self) -> u64 {
        self.smaller
    }

    /// Allocates a block of `size`, or of what it falls back on; none if that is nothing.
    ///
    /// # Errors
    /// The failure of the last attempt.
    pub(super) fn allocate<A: FrameworkAllocator>(
        &mut self,
        framework: &mut A,
        at: RequestIndex,
        (block, size): (BlockId, Bytes),
        stream: StreamId,
    ) -> Result<Option<BlockHandle>, AllocFailure> {
        let Some(list) = self.fallbacks.of(block) else {
            return framework.allocate(at, size, stream);
        };
        if self.fallbacks.is_trial(block) {
            return Ok(self.allocate_trial(framework, at, (list, size), stream));
        }
        let got = &mut self.got[list.index()];
        let smaller = self.fallbacks.sizes(list).iter().copied().filter(|&other| other < size);
        let known = got.filter(|&got| got < size);
        let untried = std::iter::once(size).chain(smaller).filter(|&size| Some(size) != known);
        let mut failure = None;
        for attempt in known.into_iter().chain(untried) {
            match framework.allocate(at, attempt, stream) {
                Ok(handle) => {
                    *got = (attempt < size).then_some(attempt);
                    self.smaller += u64::from(attempt < size);
                    return Ok(handle);
                }
                Err(other) => failure = Some(other),
            }
        }
        Err(failure.expect("the size itself was tried"))
    }

    /// Returns whether the program releases all cached memory when it frees this block.
    pub(super) fn releases_cache(&self, block: BlockId) -> bool {
        self.fallbacks.is_trial(block)
    }

    /// Allocates the workspace of a trial of all algorithms, which never fails: the algorithms that do
    /// not fit are left out (`generate_and_filter_plans` in
    /// `aten/src/ATen/native/cudnn/Conv_v8.cpp`; the limit is that of `cacheInfo` in
    /// `c10/cuda/CUDACachingAllocator.cpp`).
    fn allocate_trial<A: FrameworkAllocator>(
        &mut self,
        framework: &mut A,
        at: RequestIndex,
        (list, size): (FallbackId, Bytes),
        stream: StreamId,
    ) -> Option<BlockHandle> {
        let limit = framework.device().free_bytes().map(|free| free.max(framework.largest_free()));
        let smaller = self.fallbacks.sizes(list).iter().copied().filter(|&other| other < size);
        let fitting = |&size: &Bytes| limit.is_none_or(|limit| size <= limit);
        let mut attempt = std::iter::once(size).chain(smaller).find(fitting).unwrap_or_default();
        self.smaller += u64::from(attempt < size);
        while attempt > Bytes::ZERO {
            if let Ok(handle) = framework.allocate(at, attempt, stream) {
                return handle;
            }
            attempt = Bytes(attempt.get() / 2);
        }
        None
    }
}
