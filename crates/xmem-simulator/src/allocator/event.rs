//! The allocator's own event list, as PyTorch's memory history records it.

use xmem_types::{Addr, Bytes, StreamId};

/// The kind of an event (`TraceEntry::Action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventAction {
    /// A block was handed out.
    Alloc,
    /// The program gave a block back.
    FreeRequested,
    /// The block became free for others.
    FreeCompleted,
    /// A segment came from the device.
    SegmentAlloc,
    /// A segment went back to the device.
    SegmentFree,
    /// Pages of an expandable segment were mapped.
    SegmentMap,
    /// Pages of an expandable segment were unmapped.
    SegmentUnmap,
    /// An allocation failed.
    Oom,
}

impl EventAction {
    /// The name in PyTorch's snapshots.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::FreeRequested => "free_requested",
            Self::FreeCompleted => "free_completed",
            Self::SegmentAlloc => "segment_alloc",
            Self::SegmentFree => "segment_free",
            Self::SegmentMap => "segment_map",
            Self::SegmentUnmap => "segment_unmap",
            Self::Oom => "oom",
        }
    }
}

/// One entry of the event list (`TraceEntry`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of event.
    pub action: EventAction,
    /// The address; for [`EventAction::Oom`] PyTorch puts the device's free bytes here.
    pub addr: Addr,
    /// Requested bytes for blocks, real bytes for segments and pages, rounded size for an OOM.
    pub size: Bytes,
    /// The stream of the block or segment.
    pub stream: StreamId,
}

/// Who listens to the events of an allocator.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: Event);
}

/// Ignores all events.
impl Observer for () {
    fn event(&mut self, _event: Event) {}
}

/// The whole list is kept.
impl Observer for Vec<Event> {
    fn event(&mut self, event: Event) {
        self.push(event);
    }
}
