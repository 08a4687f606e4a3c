//! The places of blocks: an address, or, where addresses are not those of the recording, an
//! offset into a numbered segment.

use crate::recording::Shift;
use std::collections::BTreeMap;
use std::fmt;
use xmem_simulator::{Event, EventAction, PoolKind, SegmentState};
use xmem_types::{Addr, Bytes, StreamId};

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryPlace {
    /// Nowhere: a request that failed.
    Nowhere,
    /// At an address of the recording.
    Address(Addr),
    /// In a segment, counted in the order in which they came to be.
    Segment {
        /// Its number.
        number: u32,
        /// From its start.
        offset: Bytes,
    },
}

impl fmt::Display for MemoryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str("-"),
            Self::Address(addr) => write!(f, "{:#x}", addr.0),
            Self::Segment { number, offset } => write!(f, "segment {number} + {:#x}", offset.get()),
        }
    }
}

/// One thing that an allocator did, as it can be compared with another allocator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatorAction {
    /// The kind of action.
    pub kind: EventAction,
    /// The place.
    pub place: MemoryPlace,
    /// Requested bytes for blocks, real bytes for segments and pages, rounded ones for an OOM.
    pub size: Bytes,
    /// The stream; rows of [`Snapshot::streams`](xmem_snapshot::Snapshot::streams).
    pub stream: StreamId,
}

/// The names of one side's places.
#[derive(Clone, Debug)]
pub(super) enum Names {
    /// By recorded address.
    Addresses(Shift),
    /// By segment.
    Segments(SegmentNumbers),
}

impl Names {
    /// The name of an address, which has not changed hands yet.
    pub(super) fn place(&self, addr: Addr) -> MemoryPlace {
        match self {
            Self::Addresses(shift) => MemoryPlace::Address(shift.to_recorded(addr)),
            Self::Segments(numbers) => numbers.place(addr),
        }
    }

    /// An event in names, after which segments may have come or gone.
    pub(super) fn action(&mut self, event: Event) -> AllocatorAction {
        let before = self.unchanged(event);
        let Self::Segments(numbers) = self else { return before };
        numbers.follow(event);
        match event.action {
            EventAction::SegmentAlloc | EventAction::SegmentMap => self.unchanged(event),
            _ => before,
        }
    }

    /// An event in the names as they are.
    pub(super) fn unchanged(&self, event: Event) -> AllocatorAction {
        let Event { action, addr, size, stream } = event;
        let nowhere = action == EventAction::Oom;
        let place = if nowhere { MemoryPlace::Nowhere } else { self.place(addr) };
        AllocatorAction { kind: action, place, size, stream }
    }
}

/// Segments by address, numbered as they come.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentNumbers {
    /// Start of each range to its end, with the segment it is part of.
    ranges: BTreeMap<Addr, (Addr, Origin)>,
    next: u32,
}

/// A segment: its number and its first address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    number: u32,
    base: Addr,
    /// Of an expandable segment, whom it serves.
    expandable: Option<(StreamId, PoolKind)>,
}

impl SegmentNumbers {
    pub(super) fn new(start: &[SegmentState]) -> Self {
        let mut numbers = Self::default();
        for state in start {
            let expandable = state.expandable.then_some((state.stream, state.pool));
            numbers.add(state.addr, state.size, expandable);
        }
        numbers
    }

    fn add(&mut self, addr: Addr, size: Bytes, expandable: Option<(StreamId, PoolKind)>) {
        let mut origins = self.ranges.values().map(|&(_, origin)| origin);
        let known = origins.find(|origin| expandable.is_some() && origin.expandable == expandable);
        let origin = known.unwrap_or_else(|| {
            self.next += 1;
            Origin { number: self.next - 1, base: addr, expandable }
        });
        self.ranges.insert(addr, (end(addr, size), origin));
    }

    fn place(&self, addr: Addr) -> MemoryPlace {
        let below = self.ranges.range(..=addr).next_back();
        match below.filter(|(_, (end, _))| addr < *end) {
            Some((_, (_, origin))) => MemoryPlace::Segment {
                number: origin.number,
                offset: Bytes(addr.0.wrapping_sub(origin.base.0)),
            },
            None => MemoryPlace::Address(addr),
        }
    }

    fn follow(&mut self, event: Event) {
        let Event { addr, size, stream, .. } = event;
        match event.action {
            EventAction::SegmentAlloc => self.add(addr, size, None),
            EventAction::SegmentMap => {
                // The small pool maps single pages of 2 MiB, the large one pages of at least 10.
                let small = size == Bytes::mib(2);
                let kind = if small { PoolKind::Small } else { PoolKind::Large };
                self.add(addr, size, Some((stream, kind)));
            }
            EventAction::SegmentFree | EventAction::SegmentUnmap => {
                self.remove(addr, end(addr, size));
            }
            EventAction::Alloc
            | EventAction::FreeRequested
            | EventAction::FreeCompleted
            | EventAction::Oom => {}
        }
    }

    fn remove(&mut self, from: Addr, to: Addr) {
        let first = self.ranges.range(..=from).next_back().map_or(from, |(&start, _)| start);
        let touched: Vec<Addr> = self.ranges.range(first..to).map(|(&start, _)| start).collect();
        for start in touched {
            let (end, origin) = self.ranges[&start];
            if end <= from {
                continue;
            }
            self.ranges.remove(&start);
            if start < from {
                self.ranges.insert(start, (from, origin));
            }
            if end > to {
                self.ranges.insert(to, (end, origin));
            }
        }
    }
}

fn end(addr: Addr, size: Bytes) -> Addr {
    Addr(addr.0.saturating_add(size.get()))
}
