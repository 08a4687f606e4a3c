//! The reserved bytes, entry by entry, and the device's limit that follows from them.

use super::{DeviceAnswer, HistoryStep, Recording, StepKind};
use xmem_snapshot::{Action, TraceEntry};
use xmem_types::Bytes;

/// Reserved memory along a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// Before the first entry, and after each.
    reserved: Vec<Bytes>,
}

impl Levels {
    /// Of a trace that begins with `start` reserved.
    pub(crate) fn new(recording: &Recording<'_>, start: Bytes) -> Self {
        let mut now = start;
        let mut reserved = vec![now];
        for entry in recording.trace() {
            now = changed(now, entry);
            reserved.push(now);
        }
        Self { reserved }
    }

    /// After the entry in this row.
    pub(crate) fn after(&self, row: usize) -> Bytes {
        self.reserved[row + 1]
    }

    pub(crate) fn peak(&self) -> Bytes {
        self.reserved.iter().copied().max().unwrap_or_default()
    }

    /// The memory that the device had for the allocator during a step in which it refused some: the
    /// most that the allocator came to hold within it. The truth may be more, but not so much that
    /// it would have made a difference: the request that failed was for more than what was left.
    /// `None` if nothing was refused.
    pub(crate) fn limit_during(&self, step: &HistoryStep) -> Option<Bytes> {
        let refused = match step.kind {
            StepKind::Alloc { device, .. } => device == DeviceAnswer::Refused,
            StepKind::Failed { .. } => true,
            StepKind::Free { .. } | StepKind::Complete { .. } | StepKind::EmptyCache => false,
        };
        if !refused {
            return None;
        }
        let (start, end) = (step.entries.start, step.entries.end);
        // What was reserved before the step was granted under another limit, perhaps.
        let grown = (start + 1..=end).filter(|&at| self.reserved[at] > self.reserved[at - 1]);
        let most = grown.map(|at| self.reserved[at]).max().unwrap_or_default();
        Some(most.max(self.reserved[end]))
    }
}

fn changed(now: Bytes, entry: &TraceEntry) -> Bytes {
    match entry.action {
        Action::SegmentAlloc | Action::SegmentMap => now + entry.size,
        Action::SegmentFree | Action::SegmentUnmap => now.saturating_sub(entry.size),
        _ => now,
    }
}
