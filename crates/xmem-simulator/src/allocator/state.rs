//! Segments and blocks, as they are and as they were.

use super::{PoolKind, PrivatePoolId, RequestIndex, SegmentId};
use xmem_types::{Addr, Bytes, StreamId};

/// A range that the allocator got from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The start address.
    pub addr: Addr,
    /// Its size as requested from the device; of an expandable segment what is mapped now.
    pub size: Bytes,
    /// The stream whose requests it serves.
    pub stream: StreamId,
    /// The pool it belongs to.
    pub pool: PoolKind,
    /// The private pool it belongs to; none for the default ones.
    pub private_pool: Option<PrivatePoolId>,
    /// True if it is address space that is mapped as needed (see [`Mapping`]).
    pub expandable: bool,
    /// The request for which the allocator obtained it.
    pub born: RequestIndex,
    /// The request during which it was released, if it was.
    pub died: Option<RequestIndex>,
}

/// Memory behind a part of an expandable segment, for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The segment.
    pub segment: SegmentId,
    /// The start address.
    pub addr: Addr,
    /// Its size.
    pub size: Bytes,
    /// The request that made the allocator map it.
    pub born: RequestIndex,
    /// The request during which it was unmapped, if it was.
    pub died: Option<RequestIndex>,
}

/// A segment as it is; of an expandable one, a contiguous mapped range (`SegmentInfo` of
/// `c10/core/CachingDeviceAllocator.h`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentState {
    /// Its number.
    pub segment: SegmentId,
    /// The start address.
    pub addr: Addr,
    /// Its size.
    pub size: Bytes,
    /// The stream whose requests it serves.
    pub stream: StreamId,
    /// The pool it belongs to.
    pub pool: PoolKind,
    /// The private pool it belongs to; none for the default ones.
    pub private_pool: Option<PrivatePoolId>,
    /// True if it is part of an expandable segment.
    pub expandable: bool,
    /// Its blocks, by address; together they cover it.
    pub blocks: Vec<BlockState>,
}

impl SegmentState {
    /// The end address.
    #[must_use]
    pub fn end(&self) -> Addr {
        Addr(self.addr.0 + self.size.get())
    }
}

/// A part of a segment (`BlockInfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockState {
    /// The start address.
    pub addr: Addr,
    /// Its size.
    pub size: Bytes,
    /// The size that the program requested; meaningless if the block is free.
    pub requested: Bytes,
    /// The use of the block.
    pub used: BlockUse,
}

/// The use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockUse {
    /// Handed out.
    Allocated,
    /// Given back, while other streams may still use it.
    PendingFree,
    /// Cached for reuse.
    Free,
}

impl BlockUse {
    /// The name in PyTorch's snapshots.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocated => "active_allocated",
            Self::PendingFree => "active_pending_free",
            Self::Free => "inactive",
        }
    }
}
