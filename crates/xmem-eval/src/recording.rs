//! The recorded history of one device's allocator, in the simulator's types.

mod pages;
mod reservations;
mod reserved;
mod rewind;

pub(crate) use reservations::Reservations;
pub(crate) use reserved::Levels;
pub use rewind::StartUncertainty;
pub(crate) use rewind::{Start, private_pool};
pub(crate) use xmem_snapshot::{DeviceAnswer, HistoryStep, Reuse, StepKind};

use std::collections::{BTreeMap, BTreeSet};
use xmem_simulator::{AllocatorConfig, Event, EventAction, PoolKind};
use xmem_snapshot::{
    Action, DeviceIndex, EntryIndex, ReleaseChoice, Segment, SegmentKind, Snapshot, TraceEntry,
};
use xmem_types::{Addr, Bytes, Diagnostics};

/// The simulated address space, which recorded addresses have to stay out of (see
/// [`SeedError`](xmem_simulator::SeedError)).
const SIMULATED: std::ops::Range<u64> = 1 << 45..1 << 46;

/// By how much the simulator sees recorded addresses higher up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift(u64);

impl Shift {
    /// The recorded address behind one that the simulator sees; one that the simulator made up
    /// stays.
    pub(crate) fn to_recorded(self, addr: Addr) -> Addr {
        if SIMULATED.contains(&addr.0) { addr } else { Addr(addr.0.wrapping_sub(self.0)) }
    }
}

/// One device of a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recording<'s> {
    pub(crate) snapshot: &'s Snapshot,
    pub(crate) device: DeviceIndex,
    /// The first entry that is used.
    from: usize,
    pub(crate) shift: Shift,
}

impl<'s> Recording<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot, device: DeviceIndex) -> Self {
        let mut recording = Self { snapshot, device, from: 0, shift: Shift(0) };
        recording.from = snapshot.first_complete_entry(device);
        let segments = recording.segments().map(|segment| segment.address.0);
        let entries = recording.trace().iter().map(|entry| entry.addr.0);
        if segments.chain(entries).any(|addr| SIMULATED.contains(&addr)) {
            recording.shift = Shift(SIMULATED.end);
        }
        recording
    }

    /// The entries that are used.
    pub(crate) fn trace(&self) -> &'s [TraceEntry] {
        &self.snapshot.trace(self.device)[self.from..]
    }

    /// The place of a used entry in the whole trace.
    pub(crate) fn index(&self, row: usize) -> EntryIndex {
        EntryIndex(u32::try_from(self.from + row).expect("a pickle has fewer than 2^32 dicts"))
    }

    /// The number of entries at the beginning that are not used.
    pub(crate) fn left_out(&self) -> usize {
        self.from
    }

    /// The segments at the moment of the snapshot.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &'s Segment> + use<'s> {
        let device = self.device;
        self.snapshot.segments.iter().filter(move |segment| segment.device == device)
    }

    /// A recorded address as the simulator sees it. The order of addresses is kept.
    pub(crate) fn to_simulated(self, addr: Addr) -> Addr {
        Addr(addr.0.wrapping_add(self.shift.0))
    }

    /// The recorded address behind one that the simulator sees.
    pub(crate) fn to_recorded(self, addr: Addr) -> Addr {
        self.shift.to_recorded(addr)
    }

    /// An entry as the simulator's allocator would write it; none if it never writes such a thing.
    pub(crate) fn event(&self, entry: &TraceEntry) -> Option<Event> {
        let action = match entry.action {
            Action::SegmentAlloc => EventAction::SegmentAlloc,
            Action::SegmentFree => EventAction::SegmentFree,
            Action::SegmentMap => EventAction::SegmentMap,
            Action::SegmentUnmap => EventAction::SegmentUnmap,
            Action::Alloc => EventAction::Alloc,
            Action::FreeRequested => EventAction::FreeRequested,
            Action::FreeCompleted => EventAction::FreeCompleted,
            Action::OutOfMemory { .. } => EventAction::Oom,
            Action::Snapshot | Action::Annotate | Action::Other(_) => return None,
        };
        let addr = match action {
            EventAction::Oom => Addr::default(),
            _ => self.to_simulated(entry.addr),
        };
        Some(Event { action, addr, size: entry.size, stream: entry.stream })
    }

    /// The bytes reserved at the moment of the snapshot.
    pub(crate) fn reserved_at_end(&self) -> Bytes {
        self.segments().map(|segment| segment.total).sum()
    }
}

/// The pool, in the simulator's words.
pub(crate) fn kind_of(kind: SegmentKind) -> PoolKind {
    match kind {
        SegmentKind::Small => PoolKind::Small,
        SegmentKind::Large => PoolKind::Large,
    }
}

/// The steps behind the used entries.
pub(crate) fn steps(recording: &Recording<'_>, config: &AllocatorConfig) -> Vec<HistoryStep> {
    let choosy = config.max_split_size.is_some() || config.garbage_collection_threshold.is_some();
    let choice = if choosy { ReleaseChoice::Some } else { ReleaseChoice::All };
    recording.snapshot.steps(recording.trace(), choice)
}

/// Every doubt about the segments and the used entries.
pub(crate) fn doubts(recording: &Recording<'_>) -> Diagnostics {
    recording.snapshot.doubts(recording.device, recording.trace())
}

/// Returns whether the recording began with nothing: all that its entries speak of came to be in
/// it.
pub(crate) fn begins_empty(recording: &Recording<'_>) -> bool {
    let mut ranges: BTreeMap<Addr, Bytes> = BTreeMap::new();
    let mut held: BTreeSet<Addr> = BTreeSet::new();
    recording.trace().iter().all(|entry| match entry.action {
        Action::SegmentAlloc | Action::SegmentMap => {
            ranges.insert(entry.addr, entry.size);
            true
        }
        Action::SegmentFree => ranges.contains_key(&entry.addr),
        Action::Alloc => {
            held.insert(entry.addr);
            let below = ranges.range(..=entry.addr).next_back();
            below.is_some_and(|(start, size)| entry.addr.0 - start.0 < size.get())
        }
        Action::FreeRequested => held.remove(&entry.addr),
        _ => true,
    })
}
