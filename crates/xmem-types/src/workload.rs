//! A job's requests, what else it does to the allocator, and the smaller sizes that it accepts where memory
//! is short.

use crate::{BlockId, Bytes, PrivatePoolId, Request};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeSet;

/// The requests of a job to an allocator.
///
/// Made from plain requests with `From`; then every allocation is needed as it is.
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    /// The requests, in program order.
    pub requests: &'a [Request],
    /// The allocations that may be smaller if they must.
    pub fallbacks: &'a Fallbacks,
    /// What the program does to the allocator between the requests, in order.
    pub calls: &'a [PlacedCall],
}

/// An [`AllocatorCall`] with its place among the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedCall {
    /// The position of the request that follows.
    pub before: usize,
    /// The call.
    pub call: AllocatorCall,
}

/// What a program does to an allocator besides its requests, or what the device does to its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocatorCall {
    /// `torch.cuda.empty_cache`.
    ReleaseCache,
    /// The allocations that follow come from a private pool, which is made if it is new.
    EnterPool(PrivatePoolId),
    /// They no longer do.
    LeavePool(PrivatePoolId),
    /// The `MemPool` or the graphs of a pool are deleted, and its cached memory is released.
    ReleasePool(PrivatePoolId),
    /// The free of this block, which is to come, waits for other streams until [`Self::Complete`].
    AwaitStreams(BlockId),
    /// The device is done with a freed block that waits.
    Complete(BlockId),
}

impl<'a> Workload<'a> {
    /// `requests` with sizes to fall back on.
    #[must_use]
    pub const fn new(requests: &'a [Request], fallbacks: &'a Fallbacks) -> Self {
        Self { requests, fallbacks, calls: &[] }
    }

    /// The same with calls between the requests, in order.
    #[must_use]
    pub const fn with_calls(self, calls: &'a [PlacedCall]) -> Self {
        Self { calls, ..self }
    }
}

impl<'a> From<&'a [Request]> for Workload<'a> {
    fn from(requests: &'a [Request]) -> Self {
        Self { requests, fallbacks: &NONE, calls: &[] }
    }
}

impl<'a> From<&'a Vec<Request>> for Workload<'a> {
    fn from(requests: &'a Vec<Request>) -> Self {
        requests.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [Request; N]> for Workload<'a> {
    fn from(requests: &'a [Request; N]) -> Self {
        requests.as_slice().into()
    }
}

static NONE: Fallbacks = Fallbacks {
    lists: Vec::new(),
    of_block: FxHashMap::with_hasher(FxBuildHasher),
    trials: BTreeSet::new(),
};

/// The index of a list of sizes in [`Fallbacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FallbackId(u32);

impl FallbackId {
    /// The index among [`Fallbacks::len`] lists.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Allocations of which a program tries several sizes, one after the other, until it gets one: the
/// workspaces of convolutions, whose algorithms differ in what they need (PyTorch's
/// `aten/src/ATen/native/cudnn/Conv_v8.cpp`, `try_configs`).
///
/// Calls that share a list share the result: the next call begins with the size that the last one
/// got (`benchmark_cache` there).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fallbacks {
    lists: Vec<Vec<Bytes>>,
    of_block: FxHashMap<BlockId, FallbackId>,
    trials: BTreeSet<BlockId>,
}

impl Fallbacks {
    /// Adds a list of sizes, in the order in which they are tried once a block cannot have its own. A
    /// size that is not smaller than all before it is dropped: it fails where a smaller one failed.
    pub fn add(&mut self, sizes: impl IntoIterator<Item = Bytes>) -> FallbackId {
        let mut list: Vec<Bytes> = Vec::new();
        for size in sizes {
            if list.last().is_none_or(|&least| size < least) {
                list.push(size);
            }
        }
        self.lists.push(list);
        FallbackId((self.lists.len() - 1) as u32)
    }

    /// Assigns a list to an allocation, which falls back on the sizes that are smaller than its own.
    pub fn assign(&mut self, block: BlockId, list: FallbackId) {
        self.of_block.insert(block, list);
    }

    /// Assigns a list to the workspace in which a program tries all algorithms
    /// (`torch.backends.cudnn.benchmark`): it gets the largest size up to the device's free memory or the
    /// largest free cached block, whichever is more; half of that where the allocation fails, and so on
    /// (`generate_and_filter_plans` in `aten/src/ATen/native/cudnn/Conv_v8.cpp`). With its free, all
    /// cached memory is released (`run_single_conv` there).
    pub fn assign_trial(&mut self, block: BlockId, list: FallbackId) {
        self.assign(block, list);
        self.trials.insert(block);
    }

    /// Returns whether a block is the workspace of a trial.
    #[must_use]
    pub fn is_trial(&self, block: BlockId) -> bool {
        self.trials.contains(&block)
    }

    /// The list of a block, if it has one.
    #[must_use]
    pub fn of(&self, block: BlockId) -> Option<FallbackId> {
        self.of_block.get(&block).copied()
    }

    /// The sizes of a list, in descending order.
    #[must_use]
    pub fn sizes(&self, list: FallbackId) -> &[Bytes] {
        &self.lists[list.index()]
    }

    /// The number of lists.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns whether no allocation has anything to fall back on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of_block.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sizes_below_all_before_them_are_worth_a_try() {
        let mut fallbacks = Fallbacks::default();
        let list = fallbacks.add([30, 50, 30, 20, 20, 25, 0, 0].map(Bytes));
        assert_eq!(fallbacks.sizes(list), [30, 20, 0].map(Bytes));
        assert!(fallbacks.is_empty());
        fallbacks.assign(BlockId(7), list);
        assert_eq!((fallbacks.of(BlockId(7)), fallbacks.of(BlockId(8))), (Some(list), None));
        fallbacks.assign_trial(BlockId(8), list);
        assert_eq!([7, 8].map(|block| fallbacks.is_trial(BlockId(block))), [false, true]);
    }
}
