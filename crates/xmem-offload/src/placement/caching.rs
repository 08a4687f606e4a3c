//! PyTorch's caching allocator as a placement: the memory in use is what it has reserved.

use super::{PlaceError, Space};
use crate::events::PieceId;
use crate::groups::Group;
use std::collections::BTreeMap;
use std::fmt;
use xmem_simulator::{
    AllocatorConfig, BlockHandle, BlockUse, CachingAllocator, Device, DeviceConfig, Framework,
    FrameworkAllocator, RequestIndex,
};
use xmem_types::{Bytes, StreamId};

/// The allocator over a device.
pub(crate) struct CachingSpace {
    allocator: CachingAllocator<()>,
    held: BTreeMap<PieceId, BlockHandle>,
    capacity: Option<Bytes>,
    requests: usize,
}

impl CachingSpace {
    pub(crate) fn new(capacity: Option<Bytes>) -> Self {
        let device = Device::new(&DeviceConfig { capacity, ..DeviceConfig::default() });
        Self {
            allocator: AllocatorConfig::default().over(device, ()),
            held: BTreeMap::new(),
            capacity,
            requests: 0,
        }
    }

    fn request(&mut self) -> RequestIndex {
        self.requests += 1;
        RequestIndex(self.requests - 1)
    }
}

impl fmt::Debug for CachingSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachingSpace").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl Space for CachingSpace {
    fn allocate(&mut self, piece: PieceId, size: Bytes, _group: Group) -> Result<(), PlaceError> {
        let at = self.request();
        match self.allocator.allocate(at, size, StreamId(0)) {
            Ok(block) => {
                self.held.extend(block.map(|block| (piece, block)));
                Ok(())
            }
            Err(_) => Err(PlaceError::Full),
        }
    }

    fn free(&mut self, piece: PieceId) {
        let at = self.request();
        if let Some(block) = self.held.remove(&piece) {
            self.allocator.free(at, block);
        }
    }

    fn has_room(&self, size: Bytes, _group: Group) -> bool {
        let reserved = self.allocator.reserved();
        self.allocator.largest_free() >= size
            || self.capacity.is_none_or(|capacity| reserved + size <= capacity)
    }

    fn used(&self) -> Bytes {
        self.allocator.reserved()
    }

    fn holes(&self) -> Vec<Bytes> {
        let segments = self.allocator.state();
        let blocks = segments.iter().flat_map(|segment| &segment.blocks);
        blocks.filter(|block| block.used == BlockUse::Free).map(|block| block.size).collect()
    }

    /// Segments are one above the other, as they were obtained.
    fn address(&self, piece: PieceId) -> Option<Bytes> {
        let block = self.allocator.block(*self.held.get(&piece)?);
        let segments = self.allocator.segments();
        let number = block.segment.index();
        let below: Bytes = segments[..number].iter().map(|segment| segment.size).sum();
        Some(below + Bytes(block.addr.0 - segments[number].addr.0))
    }
}
