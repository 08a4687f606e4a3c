//! The information in a device trace beyond its entries: the requests of the program, and how
//! memory use went.

use crate::model::{Action, BlockState, DeviceIndex, EntryIndex, Snapshot, TraceEntry};
use std::collections::{BTreeMap, BTreeSet};
use xmem_types::{Addr, BlockId, Bytes, Diagnostics, Request, RequestKind, Severity};

/// The requests of a program to the allocator, as one device trace recorded them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedRequests {
    /// Allocations and frees in order; blocks are numbered by their allocation, from 0.
    pub requests: Vec<Request>,
    /// Of each request, the trace entry it comes from.
    pub entries: Vec<EntryIndex>,
    /// Frees of blocks that were allocated before the recording began. They are no requests.
    pub frees_without_allocation: u64,
    /// Allocations at an address that was still in use: the free in between was not recorded. The
    /// earlier block is freed right before.
    pub unrecorded_frees: u64,
}

/// A figure over the recording: at its start, at most, and at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// When the recording began.
    pub start: Bytes,
    /// The largest value during the recording.
    pub peak: Bytes,
    /// At the moment of the snapshot.
    pub end: Bytes,
}

/// Memory use of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUsage {
    /// The bytes that the program requested and had not freed, not rounded
    /// (`requested_bytes.all` of `torch.cuda.memory_stats`).
    pub requested: Usage,
    /// The bytes that the allocator held from the device (`reserved_bytes.all`).
    pub reserved: Usage,
}

impl Snapshot {
    /// The requests recorded for `device`, in order, for an allocator to replay; none if there is
    /// no trace for it.
    ///
    /// A block is freed when the program says so (`free_requested`), also if the allocator
    /// waits for another stream before reusing it. Requests that ended in an `oom` entry are left
    /// out.
    #[must_use]
    pub fn requests(&self, device: DeviceIndex) -> RecordedRequests {
        let mut recorded = RecordedRequests::default();
        for (entry, change) in changes(self.trace(device)) {
            let mut add = |block, kind| {
                recorded.requests.push(Request { block, kind });
                recorded.entries.push(entry.index);
            };
            match change {
                Change::Alloc { block, replaces } => {
                    if let Some(lost) = replaces {
                        add(lost.block, RequestKind::Free);
                    }
                    let kind =
                        RequestKind::Alloc { size: entry.entry.size, stream: entry.entry.stream };
                    add(block, kind);
                    recorded.unrecorded_frees += u64::from(replaces.is_some());
                }
                Change::Free(live) => add(live.block, RequestKind::Free),
                Change::FreeOfUnknown => recorded.frees_without_allocation += 1,
            }
        }
        recorded
    }

    /// The memory use of `device` over the trace, counted back from the segments at its end.
    ///
    /// Told as odd: a trace that takes away more than there was, as when recording ended long
    /// before the snapshot was taken.
    #[must_use]
    pub fn usage(&self, device: DeviceIndex) -> (DeviceUsage, Diagnostics) {
        let (mut end_requested, mut end_reserved) = (0, 0);
        for segment in self.segments.iter().filter(|segment| segment.device == device) {
            end_reserved += i128::from(segment.total.get());
            for block in &segment.blocks {
                if block.state == BlockState::ActiveAllocated {
                    end_requested += i128::from(block.requested.unwrap_or(block.size).get());
                }
            }
        }
        let mut requested = Level::default();
        for (entry, change) in changes(self.trace(device)) {
            let size = i128::from(entry.entry.size.get());
            match change {
                Change::Alloc { replaces, .. } => {
                    requested.add(-replaces.map_or(0, |lost| i128::from(lost.size.get())));
                    requested.add(size);
                }
                Change::Free(live) => requested.add(-i128::from(live.size.get())),
                Change::FreeOfUnknown => requested.add(-size),
            }
        }
        let mut reserved = Level::default();
        for entry in self.trace(device) {
            let size = i128::from(entry.size.get());
            match entry.action {
                Action::SegmentAlloc | Action::SegmentMap => reserved.add(size),
                Action::SegmentFree | Action::SegmentUnmap => reserved.add(-size),
                _ => {}
            }
        }
        let mut diagnostics = Diagnostics::default();
        let usage = DeviceUsage {
            requested: requested.ending_at(end_requested, "blocks", &mut diagnostics),
            reserved: reserved.ending_at(end_reserved, "segments", &mut diagnostics),
        };
        (usage, diagnostics)
    }

    /// The entries of `device`, oldest first.
    #[must_use]
    pub fn trace(&self, device: DeviceIndex) -> &[TraceEntry] {
        self.device_traces.get(device.0 as usize).map_or(&[], Vec::as_slice)
    }
}

/// A figure relative to its unknown start.
#[derive(Default)]
struct Level {
    now: i128,
    peak: i128,
    lowest: i128,
}

impl Level {
    fn add(&mut self, change: i128) {
        self.now += change;
        self.peak = self.peak.max(self.now);
        self.lowest = self.lowest.min(self.now);
    }

    fn ending_at(&self, end: i128, what: &str, diagnostics: &mut Diagnostics) -> Usage {
        let start = end - self.now;
        if start + self.lowest < 0 {
            diagnostics.report("trace-does-not-end-here", Severity::Warning, None, || {
                format!(
                    "the {what} of the snapshot differ from those at the end of its trace, perhaps \
                     because recording was stopped before; peaks are those of the trace alone"
                )
            });
            return self.usage(-self.lowest);
        }
        self.usage(start)
    }

    fn usage(&self, start: i128) -> Usage {
        let bytes = |level: i128| Bytes(u64::try_from(start + level).unwrap_or(u64::MAX));
        Usage { start: bytes(0), peak: bytes(self.peak), end: bytes(self.now) }
    }
}

/// A block that the trace saw allocated and not yet freed.
#[derive(Clone, Copy)]
struct Live {
    block: BlockId,
    size: Bytes,
}

/// An entry that changes what the program holds.
enum Change {
    Alloc { block: BlockId, replaces: Option<Live> },
    Free(Live),
    FreeOfUnknown,
}

struct Indexed<'s> {
    index: EntryIndex,
    entry: &'s TraceEntry,
}

/// The entries that change what the program holds.
///
/// PyTorch writes `free_requested` and, when all streams are done, `free_completed`; snapshots made
/// from profiles (`_profile_to_snapshot` in torch/cuda/_memory_viz.py) have the second alone.
fn changes(trace: &[TraceEntry]) -> impl Iterator<Item = (Indexed<'_>, Change)> {
    let mut live: BTreeMap<Addr, Live> = BTreeMap::new();
    let mut awaiting: BTreeSet<Addr> = BTreeSet::new();
    let mut blocks = 0;
    trace.iter().enumerate().filter_map(move |(index, entry)| {
        let addr = entry.addr;
        let change = match entry.action {
            Action::Alloc => {
                let block = BlockId::new(blocks);
                blocks += 1;
                awaiting.remove(&addr);
                Change::Alloc {
                    block,
                    replaces: live.insert(addr, Live { block, size: entry.size }),
                }
            }
            Action::FreeRequested => {
                awaiting.insert(addr);
                live.remove(&addr).map_or(Change::FreeOfUnknown, Change::Free)
            }
            Action::FreeCompleted => {
                if awaiting.remove(&addr) {
                    return None;
                }
                live.remove(&addr).map_or(Change::FreeOfUnknown, Change::Free)
            }
            _ => return None,
        };
        let index = EntryIndex(u32::try_from(index).expect("a pickle has fewer than 2^32 dicts"));
        Some((Indexed { index, entry }, change))
    })
}
