//! Sizes as PyTorch's allocator rounds them.

use xmem_types::Bytes;

/// PyTorch's allocator rounds sizes up to multiples of this (`kMinBlockSize` in `c10/core/AllocatorConfig.h`).
const UNIT: Bytes = Bytes(512);

/// The size of a block of PyTorch's allocator for a request.
pub(crate) const fn rounded(requested: Bytes) -> Bytes {
    requested.round_up(UNIT)
}
