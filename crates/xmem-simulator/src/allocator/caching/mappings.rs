//! The parts of expandable segments that had memory behind them, over time.

use crate::allocator::{Mapping, RequestIndex, SegmentId};
use std::collections::BTreeMap;
use xmem_types::{Addr, Bytes};

/// Every mapping ever made, and the present ones by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    all: Vec<Mapping>,
    present: BTreeMap<u64, usize>,
}

impl Mappings {
    pub(super) fn all(&self) -> &[Mapping] {
        &self.all
    }

    pub(super) fn map(&mut self, segment: SegmentId, addr: Addr, size: Bytes, at: RequestIndex) {
        self.present.insert(addr.0, self.all.len());
        self.all.push(Mapping { segment, addr, size, born: at, died: None });
    }

    /// Ends the mappings within a range; what of them lies outside continues as a new mapping.
    pub(super) fn unmap(&mut self, addr: Addr, size: Bytes, at: RequestIndex) {
        let (start, end) = (addr.0, addr.0 + size.get());
        let first = self.present.range(..=start).next_back().map_or(start, |(&first, _)| first);
        let rows: Vec<usize> = self.present.range(first..end).map(|(_, &row)| row).collect();
        for row in rows {
            let mapping = self.all[row];
            let mapping_end = mapping.addr.0 + mapping.size.get();
            if mapping_end <= start {
                continue;
            }
            self.all[row].died = Some(at);
            self.present.remove(&mapping.addr.0);
            if mapping.addr.0 < start {
                self.map(mapping.segment, mapping.addr, Bytes(start - mapping.addr.0), at);
            }
            if mapping_end > end {
                self.map(mapping.segment, Addr(end), Bytes(mapping_end - end), at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_unmapping_leaves_goes_on() {
        let mut mappings = Mappings::default();
        let at = RequestIndex;
        mappings.map(SegmentId(0), Addr(100), Bytes(40), at(1));
        mappings.map(SegmentId(0), Addr(140), Bytes(20), at(2));
        mappings.map(SegmentId(0), Addr(160), Bytes(20), at(3));
        mappings.unmap(Addr(120), Bytes(50), at(7));
        let list: Vec<_> = mappings
            .all()
            .iter()
            .map(|m| (m.addr.0, m.size.get(), m.born.0, m.died.map(|d| d.0)))
            .collect();
        assert_eq!(
            list,
            [
                (100, 40, 1, Some(7)),
                (140, 20, 2, Some(7)),
                (160, 20, 3, Some(7)),
                (100, 20, 7, None),
                (170, 10, 7, None),
            ]
        );
    }
}
