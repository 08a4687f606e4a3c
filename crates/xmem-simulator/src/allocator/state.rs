//! Segments and blocks, as they are and as they were.

use super::{PoolKind, PrivatePoolId, RequestIndex, SegmentId};
use xmem_types::{Addr, Bytes, StreamId};

/// A range that the allocator got from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it starts.
    pub addr: Addr,
    /// Its size as asked of the device; of an expandable segment what is mapped now.
    pub size: Bytes,
    /// The stream whose requests it serves.
    pub stream: StreamId,
    /// The pool it belongs to.
    pub pool: PoolKind,
    /// The private pool it belongs to; none for the default ones.
    pub private_pool: Option<PrivatePoolId>,
    /// Whether it is address space that is mapped as needed (see [`Mapping`]).
    pub expandable: bool,
    /// The request that made the allocator ask for it.
    pub born: RequestIndex,
    /// The request during which it was given back, if it was.
    pub died: Option<RequestIndex>,
}

/// Memory behind a part of an expandable segment, for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The segment.
    pub segment: SegmentId,
    /// Where it starts.
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
    /// Where it starts.
    pub addr: Addr,
    /// Its size.
    pub size: Bytes,
    /// The stream whose requests it serves.
    pub stream: StreamId,
    /// The pool it belongs to.
    pub pool: PoolKind,
    /// The private pool it belongs to; none for the default ones.
    pub private_pool: Option<PrivatePoolId>,
    /// Whether it is part of an expandable segment.
    pub expandable: bool,
    /// Its blocks, by address; together they cover it.
    pub blocks: Vec<BlockState>,
}

impl SegmentState {
    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> Addr {
        Addr(self.addr.0 + self.size.get())
    }
}

/// A part of a segment (`BlockInfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockState {
    /// Where it starts.
    pub addr: Addr,
    /// Its size.
    pub size: Bytes,
    /// What the program asked for; meaningless if the block is free.
    pub requested: Bytes,
    /// Whether it is in use.
    pub used: BlockUse,
}

/// Whether a block is in use.
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
