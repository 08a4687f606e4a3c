//! The addresses of new device ranges.

use crate::config::AddressOrder;
use std::collections::{BTreeMap, BTreeSet};
use xmem_types::{Addr, Bytes, MIB};

/// The simulated address space: 32 TiB, far above the null pointer.
const BOTTOM: u64 = 1 << 45;
const TOP: u64 = 1 << 46;

/// The driver opens address space in granules of this size.
const GRANULE: u64 = 32 * MIB;

/// Free address ranges, and the part of the space that the driver has not opened yet.
#[derive(Clone, Debug)]
pub(super) struct AddressSpace {
    order: AddressOrder,
    /// Everything in `BOTTOM..unopened` has never been handed out.
    unopened: u64,
    /// Holes above `unopened`: start to size.
    by_start: BTreeMap<u64, u64>,
    /// The same holes: size to starts. There are few distinct sizes, so that the lowest hole that
    /// fits is found without a walk over all holes.
    by_size: BTreeMap<u64, BTreeSet<u64>>,
    /// Ranges at recorded addresses: start to end.
    recorded: BTreeMap<u64, u64>,
}

impl AddressSpace {
    pub(super) fn new(order: AddressOrder) -> Self {
        let mut space = Self {
            order,
            unopened: TOP,
            by_start: BTreeMap::new(),
            by_size: BTreeMap::new(),
            recorded: BTreeMap::new(),
        };
        if !space.opens_granules() {
            space.unopened = BOTTOM;
            space.insert_hole(BOTTOM, TOP - BOTTOM);
        }
        space
    }

    /// Recorded addresses are the driver's.
    fn opens_granules(&self) -> bool {
        matches!(self.order, AddressOrder::Driver | AddressOrder::Recorded)
    }

    /// Takes a range of `size`, a multiple of the page size; `None` if no hole holds it.
    pub(super) fn take(&mut self, size: Bytes) -> Option<Addr> {
        let size = size.get();
        let start = match self.order {
            AddressOrder::Driver | AddressOrder::Recorded => match self.lowest_fit(size) {
                Some(start) => start,
                None => self.open_granules(size)?,
            },
            AddressOrder::Ascending => self.lowest_fit(size)?,
            AddressOrder::Descending => self.highest_fit(size)?,
        };
        let hole = self.remove_hole(start);
        match self.order {
            AddressOrder::Descending => {
                if hole > size {
                    self.insert_hole(start, hole - size);
                }
                Some(Addr(start + hole - size))
            }
            AddressOrder::Driver | AddressOrder::Recorded | AddressOrder::Ascending => {
                if hole > size {
                    self.insert_hole(start + size, hole - size);
                }
                Some(Addr(start))
            }
        }
    }

    /// Takes the range of `size` at `addr`; false if some of it is taken. Recorded addresses have
    /// to lie outside the simulated space (Linux gives higher ones, some drivers lower ones).
    pub(super) fn take_at(&mut self, addr: Addr, size: Bytes) -> bool {
        let (start, end) = (addr.0, addr.0.saturating_add(size.get()));
        if start < TOP && end > BOTTOM {
            return false;
        }
        let below = self.recorded.range(..end).next_back();
        if below.is_some_and(|(_, &taken)| taken > start) {
            return false;
        }
        self.recorded.insert(start, end);
        true
    }

    /// Gives a range back: it becomes a hole, merged with the holes beside it.
    pub(super) fn give(&mut self, addr: Addr, size: Bytes) {
        if self.recorded.remove(&addr.0).is_some() {
            return;
        }
        let (mut start, mut size) = (addr.0, size.get());
        if let Some((&below, &len)) = self.by_start.range(..start).next_back()
            && below + len == start
        {
            self.remove_hole(below);
            start = below;
            size += len;
        }
        if self.by_start.contains_key(&(start + size)) {
            size += self.remove_hole(start + size);
        }
        self.insert_hole(start, size);
    }

    fn lowest_fit(&self, size: u64) -> Option<u64> {
        self.by_size.range(size..).filter_map(|(_, starts)| starts.first().copied()).min()
    }

    fn highest_fit(&self, size: u64) -> Option<u64> {
        self.by_size.range(size..).filter_map(|(_, starts)| starts.last().copied()).max()
    }

    /// Opens the granules that `size` needs, below all opened so far, as one hole.
    fn open_granules(&mut self, size: u64) -> Option<u64> {
        let span = size.checked_next_multiple_of(GRANULE)?;
        if span > self.unopened - BOTTOM {
            return None;
        }
        self.unopened -= span;
        self.give(Addr(self.unopened), Bytes(span));
        Some(self.unopened)
    }

    fn insert_hole(&mut self, start: u64, size: u64) {
        self.by_start.insert(start, size);
        self.by_size.entry(size).or_default().insert(start);
    }

    fn remove_hole(&mut self, start: u64) -> u64 {
        let size = self.by_start.remove(&start).unwrap_or_default();
        if let Some(starts) = self.by_size.get_mut(&size) {
            starts.remove(&start);
            if starts.is_empty() {
                self.by_size.remove(&size);
            }
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets_from_top(space: &mut AddressSpace, mib: &[u64]) -> Vec<u64> {
        mib.iter()
            .map(|&n| (TOP - space.take(Bytes::mib(n)).expect("space is left").0) / MIB)
            .collect()
    }

    #[test]
    fn driver_order_fills_the_tails_of_granules_lowest_first() {
        let mut space = AddressSpace::new(AddressOrder::Driver);
        // Two segments of 44 MiB open two granules each and leave tails of 20 MiB.
        assert_eq!(offsets_from_top(&mut space, &[44, 44]), [64, 128]);
        // 20 MiB fits the lower tail first, then the upper one; then a granule is opened.
        assert_eq!(offsets_from_top(&mut space, &[20, 16, 20]), [84, 20, 160]);
    }

    #[test]
    fn ranges_given_back_merge_and_are_reused_lowest_first() {
        let mut space = AddressSpace::new(AddressOrder::Ascending);
        let a = space.take(Bytes::mib(2)).expect("space is left");
        let b = space.take(Bytes::mib(2)).expect("space is left");
        let c = space.take(Bytes::mib(2)).expect("space is left");
        space.give(a, Bytes::mib(2));
        space.give(b, Bytes::mib(2));
        assert_eq!(space.take(Bytes::mib(4)), Some(a));
        assert_eq!(c.0 - a.0, 4 * MIB);
        let mut space = AddressSpace::new(AddressOrder::Descending);
        let a = space.take(Bytes::mib(4)).expect("space is left");
        let b = space.take(Bytes::mib(2)).expect("space is left");
        assert_eq!(a.0 - b.0, 2 * MIB);
        space.give(a, Bytes::mib(4));
        assert_eq!(space.take(Bytes::mib(2)), Some(Addr(a.0 + 2 * MIB)));
    }

    #[test]
    fn a_request_beyond_the_address_space_fails() {
        for order in [AddressOrder::Driver, AddressOrder::Ascending, AddressOrder::Descending] {
            let mut space = AddressSpace::new(order);
            assert_eq!(space.take(Bytes(1 << 59)), None);
            assert_eq!(space.take(Bytes(u64::MAX / PAGE_FOR_TEST * PAGE_FOR_TEST)), None);
            assert!(space.take(Bytes(TOP - BOTTOM)).is_some());
        }
    }

    const PAGE_FOR_TEST: u64 = 2 * MIB;
}
