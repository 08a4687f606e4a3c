//! The sizes of blocks of CUDA's caching allocator.

use xmem_types::Bytes;

/// The size of the block that a request gets (c10/cuda/CUDACachingAllocator.cpp, `round_size`).
pub(crate) fn rounded(size: Bytes) -> Bytes {
    Bytes(size.get().checked_next_multiple_of(512).unwrap_or(size.get()))
}
