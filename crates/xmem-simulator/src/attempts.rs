//! Allocations of which the program tries several sizes.

use crate::allocator::{AllocFailure, BlockHandle, FrameworkAllocator, RequestIndex};
use xmem_types::{BlockId, Bytes, Fallbacks, StreamId};

/// A program's allocations, some of which may be smaller if they must; remembers what it got.
///
/// As PyTorch does with the workspaces of convolutions (`aten/src/ATen/native/cudnn/Conv_v8.cpp`,
/// `run_single_conv`, `try_configs`): what worked last time is tried first, then everything from the
/// beginning. Each attempt that fails has given back what is cached.
#[derive(Clone, Debug)]
pub struct Attempts<'a> {
    fallbacks: &'a Fallbacks,
    /// For each list, the size that was got last.
    got: Vec<usize>,
    smaller: u64,
}

impl<'a> Attempts<'a> {
    /// A program that has not asked for anything yet.
    #[must_use]
    pub fn new(fallbacks: &'a Fallbacks) -> Self {
        Self { fallbacks, got: vec![0; fallbacks.len()], smaller: 0 }
    }

    /// How many allocations were served with less than they asked for first.
    #[must_use]
    pub const fn smaller(&self) -> u64 {
        self.smaller
    }

    /// Allocates a block of `size`, or of what it falls back on; none if that is nothing.
    ///
    /// # Errors
    /// Why the last attempt failed.
    pub fn allocate<A: FrameworkAllocator>(
        &mut self,
        framework: &mut A,
        at: RequestIndex,
        (block, size): (BlockId, Bytes),
        stream: StreamId,
    ) -> Result<Option<BlockHandle>, AllocFailure> {
        let Some(list) = self.fallbacks.of(block) else {
            return framework.allocate(at, size, stream);
        };
        let sizes = self.fallbacks.sizes(list);
        let got = self.got[list.index()];
        let known = sizes.get(got).copied().unwrap_or(size);
        let mut failure = match framework.allocate(at, known, stream) {
            Ok(handle) => {
                self.smaller += u64::from(got > 0);
                return Ok(handle);
            }
            Err(failure) => failure,
        };
        for (row, &size) in sizes.iter().enumerate().filter(|&(_, &size)| size != known) {
            match framework.allocate(at, size, stream) {
                Ok(handle) => {
                    self.got[list.index()] = row;
                    self.smaller += u64::from(row > 0);
                    return Ok(handle);
                }
                Err(other) => failure = other,
            }
        }
        Err(failure)
    }
}
