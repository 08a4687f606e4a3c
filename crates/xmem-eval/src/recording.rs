//! The recorded history of one device's allocator, in the simulator's types.

mod integrity;
mod pages;
mod reservations;
mod reserved;
mod rewind;
mod steps;

pub(crate) use integrity::doubts;
pub(crate) use reservations::Reservations;
pub(crate) use reserved::Levels;
pub use rewind::StartUncertainty;
pub(crate) use rewind::{Start, private_pool};
pub(crate) use steps::{DeviceAnswer, Reuse, Step, StepKind, begins_empty, steps};

use xmem_simulator::{Event, EventAction, PoolKind};
use xmem_snapshot::{Action, DeviceIndex, EntryIndex, Segment, SegmentKind, Snapshot, TraceEntry};
use xmem_types::{Addr, Bytes};

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
        recording.from = recording.incomplete_beginning();
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

    /// If a trace begins with segments that are released, the events that led to it may be missing,
    /// if only the newest entries were kept: then it is used from the next thing on that the
    /// program did.
    fn incomplete_beginning(&self) -> usize {
        let trace = self.snapshot.trace(self.device);
        let ends = |e: &TraceEntry| match e.action {
            Action::FreeRequested => Some(0),
            Action::Alloc | Action::OutOfMemory { .. } => Some(1),
            _ => None,
        };
        let end = trace.iter().enumerate().find_map(|(row, entry)| Some(row + ends(entry)?));
        let end = end.unwrap_or(0);
        let is_release =
            |e: &TraceEntry| matches!(e.action, Action::SegmentFree | Action::SegmentUnmap);
        if trace[..end].iter().any(is_release) { end } else { 0 }
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
