//! The events of the allocator as entries of a snapshot's history.

use xmem_simulator::{Event, EventAction, Observer};
use xmem_snapshot::{Action, StackId, TraceEntry};
use xmem_types::{Addr, Bytes, Nanos};

/// Turns an allocator's events into entries of a trace.
#[derive(Debug, Default)]
pub(super) struct EntryRecorder {
    entries: Vec<TraceEntry>,
    time: Nanos,
    stack: StackId,
}

impl EntryRecorder {
    /// Events from here on happen at `time`, because of `stack`.
    pub(super) fn enter(&mut self, time: Nanos, stack: StackId) {
        (self.time, self.stack) = (time, stack);
    }

    /// Everything that was recorded.
    pub(super) fn take(&mut self) -> Vec<TraceEntry> {
        std::mem::take(&mut self.entries)
    }
}

impl Observer for EntryRecorder {
    fn event(&mut self, event: Event) {
        let action = match event.action {
            EventAction::Alloc => Action::Alloc,
            EventAction::FreeRequested => Action::FreeRequested,
            EventAction::FreeCompleted => Action::FreeCompleted,
            EventAction::SegmentAlloc => Action::SegmentAlloc,
            EventAction::SegmentFree => Action::SegmentFree,
            EventAction::SegmentMap => Action::SegmentMap,
            EventAction::SegmentUnmap => Action::SegmentUnmap,
            EventAction::Oom => Action::OutOfMemory { device_free: Bytes(event.addr.0) },
        };
        let addr = if event.action == EventAction::Oom { Addr(0) } else { event.addr };
        self.entries.push(TraceEntry {
            stream: event.stream,
            time: Some(self.time),
            stack: self.stack,
            ..TraceEntry::new(action, addr, event.size)
        });
    }
}
