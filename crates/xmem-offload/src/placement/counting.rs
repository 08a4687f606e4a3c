//! A space that only counts: the best that any placement could do.

use super::{PlaceError, Space};
use crate::events::PieceId;
use crate::groups::Group;
use std::collections::BTreeMap;
use xmem_types::Bytes;

/// The live pieces.
#[derive(Clone, Debug)]
pub(crate) struct CountingSpace {
    capacity: Option<Bytes>,
    pieces: BTreeMap<PieceId, Bytes>,
    live: Bytes,
}

impl CountingSpace {
    pub(crate) const fn new(capacity: Option<Bytes>) -> Self {
        Self { capacity, pieces: BTreeMap::new(), live: Bytes::ZERO }
    }
}

impl Space for CountingSpace {
    fn allocate(&mut self, piece: PieceId, size: Bytes, group: Group) -> Result<(), PlaceError> {
        if !self.has_room(size, group) {
            return Err(PlaceError::Full);
        }
        self.live += size;
        self.pieces.insert(piece, size);
        Ok(())
    }

    fn free(&mut self, piece: PieceId) {
        self.live -= self.pieces.remove(&piece).unwrap_or_default();
    }

    fn has_room(&self, size: Bytes, _group: Group) -> bool {
        self.capacity.is_none_or(|capacity| self.live + size <= capacity)
    }

    fn used(&self) -> Bytes {
        self.live
    }

    fn holes(&self) -> Vec<Bytes> {
        Vec::new()
    }

    fn address(&self, _piece: PieceId) -> Option<Bytes> {
        None
    }
}
