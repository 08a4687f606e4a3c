//! Doubts about a recorded history: contents that no allocator leaves behind, so that a replay without a
//! difference says nothing.

use crate::{Action, DeviceIndex, Segment, Snapshot, TraceEntry};
use std::collections::BTreeSet;

use xmem_types::{Bytes, Diagnostics, Severity};

impl Snapshot {
    /// Every doubt about the segments of a device and about its history, of which `trace` is used.
    #[must_use]
    pub fn doubts(&self, device: DeviceIndex, trace: &[TraceEntry]) -> Diagnostics {
        let segments = self.segments.iter().filter(|segment| segment.device == device).collect();
        doubts(segments, trace)
    }
}

fn doubts(mut segments: Vec<&Segment>, trace: &[TraceEntry]) -> Diagnostics {
    let mut doubts = Diagnostics::default();
    segments.sort_by_key(|segment| segment.address);
    let mut report = |code, count: usize, text: &'static str| {
        doubts.report_many(code, Severity::Serious, None, count as u64, || text.to_owned());
    };
    report(
        "unknown-action",
        trace.iter().filter(|entry| matches!(entry.action, Action::Other(_))).count(),
        "an entry of the history has an action that this version of xmem does not know; it was not replayed",
    );
    report(
        "impossible-entry",
        trace.iter().filter(|entry| is_impossible(entry)).count(),
        "an entry of the history has a size that no device has, or ends beyond the address space",
    );
    report(
        "impossible-segment",
        segments.iter().filter(|segment| !is_possible(segment)).count(),
        "a segment is empty, ends beyond the address space, or its blocks do not fill it",
    );
    report("segments-overlap", overlaps(&segments), "a segment overlaps another one");
    report(
        "segment-allocated-twice",
        allocated_twice(trace),
        "the history allocates a segment at the address of one that was not released",
    );
    let sum = segments.iter().try_fold(0_u64, |sum, segment| sum.checked_add(segment.total.get()));
    report(
        "sum-beyond-64-bits",
        usize::from(sum.is_none() || reserved_overflows(trace)),
        "the sizes of the segments add up to more than 2^64 bytes",
    );
    doubts
}

/// More memory than any device has, by far.
const MAX_SIZE: Bytes = Bytes::gib(1 << 20);

fn is_impossible(entry: &TraceEntry) -> bool {
    // The address of a request that failed is the memory that was free, in some releases.
    let beyond = entry.addr.0.checked_add(entry.size.get()).is_none();
    let has_size = !matches!(entry.action, Action::Snapshot | Action::Annotate | Action::Other(_));
    let has_place = !matches!(entry.action, Action::OutOfMemory { .. });
    has_size && (entry.size > MAX_SIZE || (has_place && beyond))
}

/// Returns whether the segment lies in the address space, and its blocks fill it.
fn is_possible(segment: &Segment) -> bool {
    let mut next = Some(segment.address.0);
    for block in &segment.blocks {
        next = next
            .filter(|&next| next == block.address.0)
            .and_then(|next| next.checked_add(block.size.get()));
    }
    let end = segment.address.0.checked_add(segment.total.get());
    let is_empty = segment.total == Bytes::ZERO || segment.total > MAX_SIZE;
    !is_empty && end.is_some() && next == end
}

/// The number of segments that begin before another one ends; sorted by address.
fn overlaps(segments: &[&Segment]) -> usize {
    let mut end = 0;
    let overlapping = segments.iter().filter(|segment| {
        let overlaps = segment.address.0 < end;
        end = end.max(segment.address.0.saturating_add(segment.total.get()));
        overlaps
    });
    overlapping.count()
}

fn allocated_twice(trace: &[TraceEntry]) -> usize {
    let mut there = BTreeSet::new();
    let again = trace.iter().filter(|entry| match entry.action {
        Action::SegmentAlloc => !there.insert(entry.addr),
        Action::SegmentFree => {
            there.remove(&entry.addr);
            false
        }
        _ => false,
    });
    again.count()
}

fn reserved_overflows(trace: &[TraceEntry]) -> bool {
    let reserved = trace.iter().try_fold(0_u64, |now, entry| match entry.action {
        Action::SegmentAlloc | Action::SegmentMap => now.checked_add(entry.size.get()),
        Action::SegmentFree | Action::SegmentUnmap => Some(now.saturating_sub(entry.size.get())),
        _ => Some(now),
    });
    reserved.is_none()
}
