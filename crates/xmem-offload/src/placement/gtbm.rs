//! Dymem's placement (section 3.3): movable blocks from the low end of the main space, temporary ones from its high
//! end, and blocks of fully connected layers, softmax and dropout in a space of their own.
//!
//! Both ends grow towards each other; the space in between is what is left of the capacity. A free block at the
//! high end takes the top of the highest hole that fits: first fit, seen from that end.

use super::pool::{Fit, PoolSpace};
use super::{PlaceError, Space};
use crate::events::PieceId;
use crate::groups::Group;
use std::collections::BTreeMap;
use xmem_types::Bytes;

/// The two ends of the main space, and the incremental one.
#[derive(Clone, Debug)]
pub(crate) struct GtbmSpace {
    capacity: Option<Bytes>,
    low: PoolSpace,
    /// Addresses count from the end of the main space downwards.
    high: PoolSpace,
    /// One segment for each block.
    reclaimed: BTreeMap<PieceId, Bytes>,
    incremental: Bytes,
    groups: BTreeMap<PieceId, Group>,
}

impl GtbmSpace {
    pub(crate) const fn new(capacity: Option<Bytes>) -> Self {
        Self {
            capacity,
            low: PoolSpace::new(Fit::Best, None),
            high: PoolSpace::new(Fit::First, None),
            reclaimed: BTreeMap::new(),
            incremental: Bytes::ZERO,
            groups: BTreeMap::new(),
        }
    }
}

impl Space for GtbmSpace {
    fn allocate(&mut self, piece: PieceId, size: Bytes, group: Group) -> Result<(), PlaceError> {
        if !self.has_room(size, group) {
            return Err(PlaceError::Full);
        }
        self.groups.insert(piece, group);
        match group {
            Group::Movable => self.low.allocate(piece, size, group),
            Group::Temporary => self.high.allocate(piece, size, group),
            Group::Reclaimed => {
                self.reclaimed.insert(piece, size);
                self.incremental += size;
                Ok(())
            }
        }
    }

    fn free(&mut self, piece: PieceId) {
        match self.groups.remove(&piece) {
            Some(Group::Movable) => self.low.free(piece),
            Some(Group::Temporary) => self.high.free(piece),
            Some(Group::Reclaimed) => {
                let size = self.reclaimed.remove(&piece).unwrap_or_default();
                self.incremental -= size;
            }
            None => {}
        }
    }

    fn has_room(&self, size: Bytes, group: Group) -> bool {
        let fits = match group {
            Group::Movable => self.low.fits_below_top(size),
            Group::Temporary => self.high.fits_below_top(size),
            Group::Reclaimed => size == Bytes::ZERO,
        };
        fits || self.capacity.is_none_or(|capacity| self.used() + size <= capacity)
    }

    fn used(&self) -> Bytes {
        self.low.used() + self.high.used() + self.incremental
    }

    fn main_used(&self) -> Bytes {
        self.low.used() + self.high.used()
    }

    fn holes(&self) -> Vec<Bytes> {
        let mut holes = self.low.holes();
        holes.extend(self.high.holes());
        holes
    }

    fn address(&self, _piece: PieceId) -> Option<Bytes> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_do_not_fragment_each_other() {
        let mut space = GtbmSpace::new(Some(Bytes(20)));
        let pieces = [
            (Group::Movable, 4),
            (Group::Temporary, 3),
            (Group::Movable, 2),
            (Group::Reclaimed, 5),
            (Group::Temporary, 2),
        ];
        for (piece, (group, size)) in (0..).zip(pieces) {
            space.allocate(PieceId(piece), Bytes(size), group).expect("room");
        }
        assert_eq!((space.used(), space.main_used()), (Bytes(16), Bytes(11)));
        // The hole of the first block is for movable blocks only; what waits for a join goes to the other end.
        space.free(PieceId(0));
        assert_eq!((space.used(), space.holes()), (Bytes(16), vec![Bytes(4)]));
        assert!(space.has_room(Bytes(4), Group::Movable));
        assert!(space.has_room(Bytes(4), Group::Temporary));
        assert!(!space.has_room(Bytes(5), Group::Temporary));
        assert!(!space.has_room(Bytes(5), Group::Reclaimed));
        space.free(PieceId(3));
        assert_eq!(space.used(), Bytes(11));
        // Both ends shrink with their last blocks.
        space.free(PieceId(2));
        space.free(PieceId(4));
        assert_eq!((space.used(), space.holes()), (Bytes(3), vec![]));
    }
}
