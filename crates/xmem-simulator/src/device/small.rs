//! Allocations below 1 MiB: the driver packs them into pages.

use super::PAGE;
use std::collections::BTreeMap;
use xmem_types::{Addr, Bytes};

/// Ranges start and end at multiples of this.
const GRANULARITY: Bytes = Bytes(512);

/// Pages that are shared by small ranges, in the order in which they were opened.
#[derive(Clone, Debug, Default)]
pub(super) struct SmallRanges {
    pages: Vec<Page>,
}

#[derive(Clone, Debug)]
struct Page {
    start: u64,
    /// Taken ranges: start to end.
    taken: BTreeMap<u64, u64>,
}

impl SmallRanges {
    /// The first gap that fits, in the oldest page that has one.
    pub(super) fn alloc(&mut self, size: Bytes) -> Option<Addr> {
        let size = size.round_up(GRANULARITY).get();
        self.pages.iter_mut().find_map(|page| page.take(size))
    }

    /// Adds a page, and takes `size` from its start.
    pub(super) fn open(&mut self, page: Addr, size: Bytes) -> Addr {
        let end = page.0 + size.round_up(GRANULARITY).get();
        self.pages.push(Page { start: page.0, taken: BTreeMap::from([(page.0, end)]) });
        page
    }

    /// Gives a range back; the page, if nothing is left in it.
    pub(super) fn free(&mut self, addr: Addr) -> Option<Addr> {
        let row = self.pages.iter().position(|page| page.taken.contains_key(&addr.0))?;
        let page = &mut self.pages[row];
        page.taken.remove(&addr.0);
        if !page.taken.is_empty() {
            return None;
        }
        let start = page.start;
        self.pages.remove(row);
        Some(Addr(start))
    }
}

impl Page {
    fn take(&mut self, size: u64) -> Option<Addr> {
        let mut from = self.start;
        for (&start, &end) in &self.taken {
            if start - from >= size {
                break;
            }
            from = end;
        }
        if self.start + PAGE.get() - from < size {
            return None;
        }
        self.taken.insert(from, from + size);
        Some(Addr(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ranges_fill_the_first_gap_that_fits() {
        let mut small = SmallRanges::default();
        assert_eq!(small.alloc(Bytes(100)), None);
        assert_eq!(small.open(Addr(PAGE.get()), Bytes(100)), Addr(PAGE.get()));
        let at = |offset: u64| Some(Addr(PAGE.get() + offset));
        assert_eq!(small.alloc(Bytes(513)), at(512));
        assert_eq!(small.alloc(Bytes(1)), at(1536));
        assert_eq!(small.free(Addr(PAGE.get() + 512)), None);
        assert_eq!(small.alloc(Bytes(1025)), at(2048));
        assert_eq!(small.alloc(Bytes(512)), at(512));
        assert_eq!(small.alloc(PAGE), None);
    }

    #[test]
    fn an_empty_page_goes_back() {
        let mut small = SmallRanges::default();
        small.open(Addr(PAGE.get()), Bytes(1));
        assert_eq!(small.free(Addr(PAGE.get())), Some(Addr(PAGE.get())));
        assert_eq!(small.alloc(Bytes(1)), None);
    }
}
