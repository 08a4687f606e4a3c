//! The structure of a snapshot: whether its history leads to its segments and blocks, as the allocator's own does.
//!
//! The segments at the moment of the snapshot are known exactly, so that the history is undone entry by entry, last
//! first, as the memory_viz page does it. The sizes of blocks that were freed are those that were requested: what the
//! allocator added is not in the history.

use crate::{Action, BlockState, DeviceIndex, Segment, Snapshot, TraceEntry};
use std::collections::BTreeMap;
use xmem_types::{Addr, Bytes};

/// The unit of blocks (c10/cuda/CUDACachingAllocator.cpp, `kMinBlockSize`).
const BLOCK_UNIT: u64 = 512;

/// The unit of segments (`kRoundLarge`).
const SEGMENT_UNIT: u64 = 2 << 20;

/// The size of segments that hold several large blocks, and of pages of large ones (`kLargeBuffer`).
const LARGE_SEGMENT: u64 = 20 << 20;

/// Options that make segments larger than blocks need, or blocks larger than requests.
const LARGER: [&str; 2] = ["large_segment_size_mb", "roundup_power2_divisions"];

/// What contradicts what in a snapshot: each count with the number of what was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Entries of the history that contradict the segments.
    pub contradicting: (u64, u64),
    /// Segments whose sizes are not the sums of their blocks.
    pub sums: (u64, u64),
    /// Blocks whose sizes are not multiples of 512 bytes, or less than what was requested.
    pub blocks: (u64, u64),
    /// Segments whose sizes are not multiples of 2 MiB.
    pub segments: (u64, u64),
    /// Segments of the history that no allocation needs.
    pub unexplained: (u64, u64),
}

impl Snapshot {
    /// The structure of the segments of a device and of its history, of which `trace` is used.
    #[must_use]
    pub fn structure(&self, device: DeviceIndex, trace: &[TraceEntry]) -> Structure {
        let segments: Vec<&Segment> =
            self.segments.iter().filter(|segment| segment.device == device).collect();
        let count = |is_odd: fn(&Segment) -> bool| {
            let odd = segments.iter().filter(|segment| is_odd(segment)).count();
            (odd as u64, segments.len() as u64)
        };
        let blocks = segments.iter().flat_map(|segment| &segment.blocks);
        let odd_blocks = blocks.clone().filter(|block| {
            let used = block.state != BlockState::Inactive;
            !block.size.get().is_multiple_of(BLOCK_UNIT)
                || used && block.requested.is_some_and(|requested| requested > block.size)
        });
        let mut structure = Structure {
            contradicting: (0, trace.len() as u64),
            sums: count(sums_differ),
            blocks: (odd_blocks.count() as u64, blocks.count() as u64),
            segments: count(|segment| !segment.total.get().is_multiple_of(SEGMENT_UNIT)),
            unexplained: self.unexplained(trace),
        };
        let mut layout = Layout::of(&segments);
        for entry in trace.iter().rev() {
            structure.contradicting.0 += u64::from(layout.undo(entry).is_none());
        }
        structure
    }

    /// Segments and pages that are not taken for the allocation behind them, or are larger than it needs.
    fn unexplained(&self, trace: &[TraceEntry]) -> (u64, u64) {
        let settings = self.allocator_settings.as_ref().and_then(|s| s.text.as_deref());
        let has_larger = settings.is_some_and(|text| LARGER.iter().any(|key| text.contains(key)));
        let (mut unexplained, mut all) = (0, 0);
        let mut taken: Vec<&TraceEntry> = Vec::new();
        for entry in trace {
            match entry.action {
                Action::SegmentAlloc | Action::SegmentMap => {
                    taken.push(entry);
                    all += 1;
                }
                Action::Alloc => {
                    let odd = taken.iter().filter(|segment| !touches(segment, entry)).count();
                    let sizes = taken.iter().map(|segment| segment.size.get());
                    let sum = sizes.fold(0, u64::saturating_add);
                    let is_large = !has_larger && sum > most_reserved(entry.size);
                    unexplained += (odd as u64).max(u64::from(is_large));
                    taken.clear();
                }
                Action::FreeRequested => {
                    unexplained += taken.len() as u64;
                    taken.clear();
                }
                // What was mapped for it is not given back.
                Action::OutOfMemory { .. } => taken.clear(),
                _ => {}
            }
        }
        (unexplained + taken.len() as u64, all)
    }
}

fn most_reserved(requested: Bytes) -> u64 {
    requested.get().div_ceil(LARGE_SEGMENT).max(1).saturating_mul(LARGE_SEGMENT)
}

/// Returns whether the block lies in the segment, or in pages that begin with or before these.
fn touches(segment: &TraceEntry, block: &TraceEntry) -> bool {
    let end = |entry: &TraceEntry| entry.addr.0.saturating_add(entry.size.get().max(1));
    segment.addr.0 < end(block) && block.addr.0 < end(segment)
}

fn sums_differ(segment: &Segment) -> bool {
    let sum = |of: fn(BlockState) -> bool| {
        let sizes = segment.blocks.iter().filter(|block| of(block.state)).map(|b| b.size.get());
        Bytes(sizes.fold(0, u64::saturating_add))
    };
    sum(|state| state == BlockState::ActiveAllocated) != segment.allocated
        || sum(|state| state != BlockState::Inactive) != segment.active
}

/// Segments, pages and blocks in use at a moment of the history.
struct Layout {
    /// Ends of segments by their starts.
    segments: BTreeMap<u64, u64>,
    /// Ends of runs of pages by their starts: those that touch are one.
    pages: BTreeMap<u64, u64>,
    blocks: BTreeMap<u64, Used>,
}

/// A block in use: its end, as far as known, and what was requested.
#[derive(Clone, Copy)]
struct Used {
    end: u64,
    requested: Option<Bytes>,
}

impl Layout {
    fn of(segments: &[&Segment]) -> Self {
        let mut layout =
            Self { segments: BTreeMap::new(), pages: BTreeMap::new(), blocks: BTreeMap::new() };
        for segment in segments {
            let (start, end) = (segment.address.0, end_of(segment.address, segment.total));
            if segment.expandable {
                layout.add_pages(start, end);
            } else {
                layout.segments.insert(start, end);
            }
            let used = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
            layout.blocks.extend(used.map(|block| {
                let used =
                    Used { end: end_of(block.address, block.size), requested: block.requested };
                (block.address.0, used)
            }));
        }
        layout
    }

    /// Undoes an entry; none if it cannot have led to the present state.
    fn undo(&mut self, entry: &TraceEntry) -> Option<()> {
        let (start, end) = (entry.addr.0, end_of(entry.addr, entry.size));
        match entry.action {
            Action::Alloc => {
                let block = self.blocks.remove(&start)?;
                is_true(block.requested.is_none_or(|requested| requested == entry.size))
            }
            Action::FreeCompleted => {
                let is_free = !self.is_used(start, end.max(start.saturating_add(1)));
                let inside = self.holds(start, end);
                let used = Used { end, requested: Some(entry.size) };
                is_true(self.blocks.insert(start, used).is_none() && is_free && inside)
            }
            Action::FreeRequested => {
                let block = self.blocks.get(&start)?;
                is_true(block.requested.is_none_or(|requested| requested == entry.size))
            }
            Action::SegmentAlloc => {
                let is_free = !self.is_used(start, end);
                is_true(self.segments.remove(&start) == Some(end) && is_free)
            }
            Action::SegmentFree => {
                let is_new = !overlaps(&self.segments, start, end);
                self.segments.insert(start, end);
                is_true(is_new)
            }
            Action::SegmentMap => {
                let is_free = !self.is_used(start, end);
                is_true(self.remove_pages(start, end) && is_free)
            }
            Action::SegmentUnmap => {
                let is_new = !overlaps(&self.pages, start, end);
                self.add_pages(start, end);
                is_true(is_new)
            }
            Action::OutOfMemory { .. } | Action::Snapshot | Action::Annotate | Action::Other(_) => {
                Some(())
            }
        }
    }

    /// Returns whether a block in use has some of these addresses.
    fn is_used(&self, start: u64, end: u64) -> bool {
        let before = self.blocks.range(..end).next_back();
        before.is_some_and(|(&at, block)| at >= start || block.end > start)
    }

    /// Returns whether a segment or pages have all of these addresses.
    fn holds(&self, start: u64, end: u64) -> bool {
        [&self.segments, &self.pages].into_iter().any(|ranges| {
            let range = ranges.range(..=start).next_back();
            range.is_some_and(|(_, &last)| end <= last && start < last)
        })
    }

    fn add_pages(&mut self, mut start: u64, mut end: u64) {
        while let Some((&at, &last)) = self.pages.range(..=end).next_back() {
            if last < start {
                break;
            }
            (start, end) = (start.min(at), end.max(last));
            self.pages.remove(&at);
        }
        self.pages.insert(start, end);
    }

    /// Takes pages out of a run; false if they are not in one.
    fn remove_pages(&mut self, start: u64, end: u64) -> bool {
        let run = self.pages.range(..=start).next_back().map(|(&at, &last)| (at, last));
        let Some((at, last)) = run.filter(|&(_, last)| end <= last) else { return false };
        self.pages.remove(&at);
        if at < start {
            self.pages.insert(at, start);
        }
        if end < last {
            self.pages.insert(end, last);
        }
        true
    }
}

fn end_of(start: Addr, size: Bytes) -> u64 {
    start.0.saturating_add(size.get())
}

fn is_true(holds: bool) -> Option<()> {
    holds.then_some(())
}

/// Returns whether one of the ranges has some of these addresses.
fn overlaps(ranges: &BTreeMap<u64, u64>, start: u64, end: u64) -> bool {
    ranges.range(..end).next_back().is_some_and(|(_, &last)| last > start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SegmentKind, SnapshotBlock};

    const DEVICE: DeviceIndex = DeviceIndex(0);
    const START: u64 = 1 << 40;

    fn entry(action: Action, offset: u64, size: u64) -> TraceEntry {
        TraceEntry::new(action, Addr(START + offset), Bytes(size))
    }

    fn block(offset: u64, size: u64, requested: Option<u64>) -> SnapshotBlock {
        SnapshotBlock {
            address: Addr(START + offset),
            size: Bytes(size),
            requested: requested.map(Bytes),
            state: match requested {
                Some(_) => BlockState::ActiveAllocated,
                None => BlockState::Inactive,
            },
            stack: crate::StackId::EMPTY,
        }
    }

    /// A segment of 2 MiB with a block that stays and one that was freed.
    fn history() -> (Snapshot, Vec<TraceEntry>) {
        let mut snapshot = Snapshot::default();
        let blocks = vec![block(0, 1024, Some(1000)), block(1024, (2 << 20) - 1024, None)];
        snapshot.segments.push(Segment::new(DEVICE, Addr(START), SegmentKind::Small, blocks));
        let entries = vec![
            entry(Action::SegmentAlloc, 0, 2 << 20),
            entry(Action::Alloc, 0, 1000),
            entry(Action::Alloc, 1024, 5000),
            entry(Action::FreeRequested, 1024, 5000),
            entry(Action::FreeCompleted, 1024, 5000),
        ];
        (snapshot, entries)
    }

    #[test]
    fn a_history_that_leads_to_the_segments_has_no_contradiction() {
        let (snapshot, entries) = history();
        let structure = snapshot.structure(DEVICE, &entries);
        let odd = [
            structure.contradicting.0,
            structure.sums.0,
            structure.blocks.0,
            structure.segments.0,
            structure.unexplained.0,
        ];
        assert_eq!(odd, [0; 5], "{structure:?}");
    }

    #[test]
    fn entries_that_are_lost_or_changed_contradict_the_segments() {
        type Change = fn(&mut Vec<TraceEntry>);
        let changes: [(&str, Change); 6] = [
            ("without an allocation that stays", |entries| {
                entries.remove(1);
            }),
            ("without the free", |entries| entries.truncate(3)),
            ("without the segment", |entries| {
                entries.drain(..2);
            }),
            ("another size at the free", |entries| entries[3].size = Bytes(6000)),
            ("a free beyond the segment", |entries| entries[4].addr = Addr(START + (2 << 20))),
            ("another segment", |entries| entries[0].size = Bytes(4 << 20)),
        ];
        for (what, change) in changes {
            let (snapshot, mut entries) = history();
            change(&mut entries);
            let structure = snapshot.structure(DEVICE, &entries);
            // Without the segment, the history begins late.
            let expected = what != "without the segment";
            assert_eq!(structure.contradicting.0 > 0, expected, "{what}: {structure:?}");
        }
    }

    #[test]
    fn segments_are_taken_for_the_allocation_behind_them() {
        let (snapshot, entries) = history();
        let unexplained = |entries: &[TraceEntry]| snapshot.structure(DEVICE, entries).unexplained;
        assert_eq!(unexplained(&entries), (0, 1));
        let without: Vec<TraceEntry> =
            entries.iter().copied().filter(|e| e.action != Action::Alloc).collect();
        assert_eq!(unexplained(&without), (1, 1));
        let mut large = entries;
        large[0].size = Bytes(22 << 20);
        assert_eq!(unexplained(&large), (1, 1));
    }

    #[test]
    fn pages_are_runs() {
        let mut layout = Layout::of(&[]);
        layout.add_pages(10, 20);
        layout.add_pages(30, 40);
        layout.add_pages(20, 30);
        assert_eq!(layout.pages, BTreeMap::from([(10, 40)]));
        assert!(layout.remove_pages(15, 25));
        assert_eq!(layout.pages, BTreeMap::from([(10, 15), (25, 40)]));
        assert!(!layout.remove_pages(12, 30));
    }
}
