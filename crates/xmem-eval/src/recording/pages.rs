//! The pool that the pages of an expandable segment belong to. The trace has only their stream.

use super::{Recording, kind_of};
use xmem_simulator::{AllocatorConfig, PoolKind};
use xmem_snapshot::Action;
use xmem_types::{Addr, Bytes};

/// Ranges of expandable segments whose pool is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    known: Vec<(Addr, Addr, PoolKind)>,
}

impl Pages {
    /// From the segments of the snapshot, and from what was mapped: for the small pool always one
    /// page of 2 MiB, as no request there is larger (`ExpandableSegment::map`).
    pub(super) fn of(recording: &Recording<'_>, config: &AllocatorConfig) -> Self {
        let mut pages = Self::default();
        for segment in recording.segments().filter(|segment| segment.expandable) {
            pages.add(
                recording.to_simulated(segment.address),
                segment.total,
                kind_of(segment.kind),
            );
        }
        for entry in recording.trace().iter().filter(|entry| entry.action == Action::SegmentMap) {
            let small = entry.size == config.small_buffer;
            let kind = if small { PoolKind::Small } else { PoolKind::Large };
            pages.add(recording.to_simulated(entry.addr), entry.size, kind);
        }
        pages.known.sort_unstable_by_key(|&(start, end, _)| (start, end));
        pages.known.dedup();
        pages
    }

    fn add(&mut self, addr: Addr, size: Bytes, kind: PoolKind) {
        self.known.push((addr, Addr(addr.0 + size.get()), kind));
    }

    /// The pool of pages that were unmapped: that of the known range nearest to them.
    pub(super) fn kind(&self, addr: Addr, size: Bytes) -> PoolKind {
        let end = Addr(addr.0 + size.get());
        let gap = |&(start, stop, _): &(Addr, Addr, PoolKind)| {
            start.0.saturating_sub(end.0).max(addr.0.saturating_sub(stop.0))
        };
        let nearest = self.known.iter().min_by_key(|range| gap(range));
        nearest.map_or(PoolKind::Large, |&(.., kind)| kind)
    }
}
