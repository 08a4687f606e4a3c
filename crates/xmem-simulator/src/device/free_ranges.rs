//! Free address ranges, found by size and by place.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Ranges that do not overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeRanges {
    /// Start to size.
    by_start: BTreeMap<u64, u64>,
    /// Size to starts. There are few distinct sizes, so that the lowest range that fits is found
    /// without a walk over all of them.
    by_size: BTreeMap<u64, BTreeSet<u64>>,
}

impl FreeRanges {
    /// Takes `size` from the lower end of the lowest range that holds it.
    pub(super) fn take_lowest(&mut self, size: u64) -> Option<u64> {
        let fitting = self.by_size.range(size..);
        let start = fitting.filter_map(|(_, starts)| starts.first().copied()).min()?;
        let whole = self.remove(start);
        if whole > size {
            self.insert(start + size, whole - size);
        }
        Some(start)
    }

    /// Takes `size` from the upper end of the highest range that holds it.
    pub(super) fn take_highest(&mut self, size: u64) -> Option<u64> {
        let fitting = self.by_size.range(size..);
        let start = fitting.filter_map(|(_, starts)| starts.last().copied()).max()?;
        let whole = self.remove(start);
        if whole > size {
            self.insert(start, whole - size);
        }
        Some(start + whole - size)
    }

    /// Makes a range free, merged with the free ranges beside it that lie `within` these bounds.
    pub(super) fn give(&mut self, mut start: u64, mut size: u64, within: Range<u64>) {
        if let Some((&below, &len)) = self.by_start.range(within.start..start).next_back()
            && below + len == start
        {
            self.remove(below);
            start = below;
            size += len;
        }
        let end = start + size;
        if end < within.end && self.by_start.contains_key(&end) {
            size += self.remove(end);
        }
        self.insert(start, size);
    }

    pub(super) fn insert(&mut self, start: u64, size: u64) {
        self.by_start.insert(start, size);
        self.by_size.entry(size).or_default().insert(start);
    }

    /// Removes the range at `start`, and returns its size.
    pub(super) fn remove(&mut self, start: u64) -> u64 {
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
