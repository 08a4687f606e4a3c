//! The addresses of new device ranges.

use super::free_ranges::FreeRanges;
use crate::config::AddressOrder;
use std::collections::BTreeMap;
use xmem_types::{Addr, Bytes, MIB};

/// The simulated address space: 32 TiB, far above the null pointer.
const BOTTOM: u64 = 1 << 45;
const TOP: u64 = 1 << 46;

/// The driver takes address space from the operating system in multiples of this size.
const GRANULE: u64 = 32 * MIB;

/// Address space, and the ranges of it that are in use.
#[derive(Clone, Debug)]
pub(super) struct AddressSpace {
    order: AddressOrder,
    /// Address space that nothing has taken. In the driver's order, whole granules.
    free: FreeRanges,
    /// The driver's chunks by start. The other orders have none.
    chunks: BTreeMap<u64, Chunk>,
    /// Free ranges inside chunks.
    holes: FreeRanges,
    /// Ranges at recorded addresses: start to end.
    recorded: BTreeMap<u64, u64>,
}

/// Granules that the driver took for one range. What that range leaves serves others, until none
/// of them is in use.
#[derive(Clone, Debug)]
struct Chunk {
    end: u64,
    /// Ranges in use.
    ranges: usize,
}

impl AddressSpace {
    pub(super) fn new(order: AddressOrder) -> Self {
        let mut free = FreeRanges::default();
        free.insert(BOTTOM, TOP - BOTTOM);
        Self {
            order,
            free,
            chunks: BTreeMap::new(),
            holes: FreeRanges::default(),
            recorded: BTreeMap::new(),
        }
    }

    /// Takes a range of `size`, a multiple of the page size; `None` if no hole holds it.
    pub(super) fn take(&mut self, size: Bytes) -> Option<Addr> {
        let size = size.get();
        match self.order {
            AddressOrder::Driver | AddressOrder::Recorded => self.take_from_chunk(size),
            AddressOrder::Ascending => self.free.take_lowest(size),
            AddressOrder::Descending => self.free.take_highest(size),
        }
        .map(Addr)
    }

    /// The lowest hole of a chunk that fits, else the start of a new chunk.
    fn take_from_chunk(&mut self, size: u64) -> Option<u64> {
        let start = match self.holes.take_lowest(size) {
            Some(start) => start,
            None => {
                self.open_chunk(size)?;
                self.holes.take_lowest(size)?
            }
        };
        if let Some((_, chunk)) = self.chunks.range_mut(..=start).next_back() {
            chunk.ranges += 1;
        }
        Some(start)
    }

    /// A chunk is at the top of the highest free address space that holds it, as Linux places a
    /// mapping without an address (`mm/mmap.c: vm_unmapped_area`, top-down).
    fn open_chunk(&mut self, size: u64) -> Option<()> {
        let span = size.checked_next_multiple_of(GRANULE)?;
        let start = self.free.take_highest(span)?;
        self.chunks.insert(start, Chunk { end: start + span, ranges: 0 });
        self.holes.insert(start, span);
        Some(())
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

    /// Gives a range back. In the driver's order it becomes a hole of its chunk, and a chunk
    /// without a range in use becomes free address space.
    pub(super) fn give(&mut self, addr: Addr, size: Bytes) {
        if self.recorded.remove(&addr.0).is_some() {
            return;
        }
        let (start, size) = (addr.0, size.get());
        let Some((&first, chunk)) = self.chunks.range_mut(..=start).next_back() else {
            self.free.give(start, size, BOTTOM..TOP);
            return;
        };
        let end = chunk.end;
        chunk.ranges -= 1;
        let is_empty = chunk.ranges == 0;
        self.holes.give(start, size, first..end);
        if is_empty {
            self.chunks.remove(&first);
            let span = self.holes.remove(first);
            self.free.give(first, span, BOTTOM..TOP);
        }
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

    /// Most of a chunk is free, and the chunk is open for as long as some of it is in use.
    #[test]
    fn a_chunk_in_use_is_filled_before_another_is_opened() {
        let mut space = AddressSpace::new(AddressOrder::Driver);
        assert_eq!(offsets_from_top(&mut space, &[100, 20, 100]), [128, 28, 256]);
        give(&mut space, 128, 100);
        // The hole of 100 MiB is not joined with the tail of the chunk below.
        assert_eq!(offsets_from_top(&mut space, &[110, 30, 60, 26]), [384, 128, 98, 156]);
    }

    #[test]
    fn chunks_without_a_range_in_use_are_taken_again_from_the_top() {
        let mut space = AddressSpace::new(AddressOrder::Driver);
        assert_eq!(offsets_from_top(&mut space, &[44, 20, 100, 20]), [64, 20, 192, 92]);
        give(&mut space, 64, 44);
        give(&mut space, 192, 100);
        give(&mut space, 92, 20);
        // The second chunk is free as a whole, and does not lend its lower end first.
        assert_eq!(offsets_from_top(&mut space, &[50, 50, 50]), [128, 192, 256]);
        give(&mut space, 20, 20);
        assert_eq!(offsets_from_top(&mut space, &[64]), [64]);
    }

    /// Address space of neighboring chunks is one again.
    #[test]
    fn neighboring_chunks_make_room_for_a_larger_one() {
        let mut space = AddressSpace::new(AddressOrder::Driver);
        assert_eq!(offsets_from_top(&mut space, &[20, 20, 20, 20]), [32, 64, 96, 128]);
        give(&mut space, 64, 20);
        give(&mut space, 96, 20);
        assert_eq!(offsets_from_top(&mut space, &[64, 64]), [96, 192]);
    }

    fn give(space: &mut AddressSpace, from_top: u64, size: u64) {
        space.give(Addr(TOP - from_top * MIB), Bytes::mib(size));
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
