//! A pool: one range of memory with holes that are joined as soon as they touch.

use super::{PlaceError, Space};
use crate::events::PieceId;
use crate::groups::Group;
use std::collections::BTreeMap;
use xmem_types::Bytes;

/// The hole that is taken of those that are large enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The one with the lowest address.
    First,
    /// The smallest one, the lowest of equal ones.
    Best,
}

/// A pool that grows from address zero.
#[derive(Clone, Debug)]
pub(crate) struct PoolSpace {
    fit: Fit,
    capacity: Option<Bytes>,
    /// Holes below the top, by address.
    holes: BTreeMap<u64, u64>,
    placed: BTreeMap<PieceId, (u64, u64)>,
    top: u64,
}

impl PoolSpace {
    pub(crate) const fn new(fit: Fit, capacity: Option<Bytes>) -> Self {
        Self { fit, capacity, holes: BTreeMap::new(), placed: BTreeMap::new(), top: 0 }
    }

    fn hole(&self, size: u64) -> Option<(u64, u64)> {
        let mut fitting = self.holes.iter().map(|(&at, &hole)| (at, hole)).filter(|h| h.1 >= size);
        match self.fit {
            Fit::First => fitting.next(),
            Fit::Best => fitting.min_by_key(|&(at, hole)| (hole, at)),
        }
    }

    fn can_grow(&self, size: u64) -> bool {
        self.capacity.is_none_or(|capacity| self.top.saturating_add(size) <= capacity.get())
    }

    /// Returns false if there is no room below the top, and the pool would have to grow.
    pub(crate) fn fits_below_top(&self, size: Bytes) -> bool {
        size == Bytes::ZERO || self.hole(size.get()).is_some()
    }
}

impl Space for PoolSpace {
    fn allocate(&mut self, piece: PieceId, size: Bytes, _group: Group) -> Result<(), PlaceError> {
        let size = size.get();
        if size == 0 {
            return Ok(());
        }
        let at = match self.hole(size) {
            Some((at, hole)) => {
                self.holes.remove(&at);
                if hole > size {
                    self.holes.insert(at + size, hole - size);
                }
                at
            }
            None if self.can_grow(size) => {
                let at = self.top;
                self.top += size;
                at
            }
            None => return Err(PlaceError::Full),
        };
        self.placed.insert(piece, (at, size));
        Ok(())
    }

    fn free(&mut self, piece: PieceId) {
        let Some((mut at, mut size)) = self.placed.remove(&piece) else { return };
        if let Some(above) = self.holes.remove(&(at + size)) {
            size += above;
        }
        if let Some((&below, &hole)) = self.holes.range(..at).next_back()
            && below + hole == at
        {
            self.holes.remove(&below);
            (at, size) = (below, size + hole);
        }
        if at + size == self.top {
            self.top = at;
        } else {
            self.holes.insert(at, size);
        }
    }

    fn has_room(&self, size: Bytes, _group: Group) -> bool {
        self.fits_below_top(size) || self.can_grow(size.get())
    }

    fn used(&self) -> Bytes {
        Bytes(self.top)
    }

    fn holes(&self) -> Vec<Bytes> {
        self.holes.values().copied().map(Bytes).collect()
    }

    fn address(&self, piece: PieceId) -> Option<Bytes> {
        self.placed.get(&piece).map(|&(at, _)| Bytes(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocates 0..n of the sizes, frees some, and gives the address of one more.
    fn address(fit: Fit, sizes: &[u64], freed: &[u32], size: u64) -> u64 {
        let mut pool = PoolSpace::new(fit, None);
        for (piece, &size) in (0..).zip(sizes) {
            pool.allocate(PieceId(piece), Bytes(size), Group::Movable).expect("no limit");
        }
        freed.iter().for_each(|&piece| pool.free(PieceId(piece)));
        pool.allocate(PieceId(99), Bytes(size), Group::Movable).expect("no limit");
        pool.address(PieceId(99)).expect("it is placed").get()
    }

    #[test]
    fn the_hole_is_the_lowest_or_the_smallest() {
        let sizes = [8, 1, 4, 1, 4, 1];
        assert_eq!(address(Fit::First, &sizes, &[0, 2, 4], 4), 0);
        assert_eq!(address(Fit::Best, &sizes, &[0, 2, 4], 4), 9);
        assert_eq!(address(Fit::Best, &sizes, &[0, 2, 4], 5), 0);
        assert_eq!(address(Fit::Best, &sizes, &[0, 2, 4], 9), 19);
    }

    #[test]
    fn holes_that_touch_are_one_and_the_top_sinks() {
        assert_eq!(address(Fit::First, &[2, 2, 2, 2], &[0, 2, 1], 6), 0);
        assert_eq!(address(Fit::First, &[2, 2, 2, 2], &[1, 3, 2], 9), 2);
    }

    #[test]
    fn a_full_pool_refuses() {
        let mut pool = PoolSpace::new(Fit::First, Some(Bytes(5)));
        pool.allocate(PieceId(0), Bytes(3), Group::Movable).expect("room");
        assert!(!pool.has_room(Bytes(3), Group::Movable));
        let failed = pool.allocate(PieceId(1), Bytes(3), Group::Movable);
        assert_eq!(failed, Err(PlaceError::Full));
        assert!(pool.has_room(Bytes(2), Group::Movable));
    }
}
