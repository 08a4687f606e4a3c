//! One device of a snapshot.

use crate::recording::{Recording, Start, doubts};
use crate::tally::Tally;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use xmem_simulator::AllocatorConfig;
use xmem_snapshot::Site;
use xmem_snapshot::{
    Action, BlockState, DeviceIndex, DeviceUsage, PoolId, SegmentKind, Snapshot, SnapshotBlock,
    StackId,
};
use xmem_types::{Bytes, Diagnostics, Nanos};

/// One device.
#[derive(Clone, Debug)]
pub struct DeviceFacts {
    /// The name.
    pub device: DeviceIndex,
    /// Its segments.
    pub segments: SegmentFacts,
    /// Blocks that the program holds.
    pub live: Tally,
    /// The size that the program requested in them; none before PyTorch 2.0.
    pub requested: Option<Bytes>,
    /// Freed blocks that another stream has yet to finish with.
    pub pending: Tally,
    /// Free blocks.
    pub free: Tally,
    /// The largest free block.
    pub largest_free: Bytes,
    /// Each stream that has segments, by its row in [`Snapshot::streams`].
    pub streams: Vec<StreamFacts>,
    /// Each private pool that has segments.
    pub private_pools: Vec<(PoolId, Tally)>,
    /// Live blocks of the same size that were requested at the same place, the most bytes first.
    pub largest: Vec<LiveGroup>,
    /// The history, if there is one.
    pub history: Option<HistoryFacts>,
}

/// Segments, or of expandable ones contiguous mapped ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentFacts {
    /// All.
    pub all: Tally,
    /// Those of the small pool.
    pub small: Tally,
    /// Those of the large pool.
    pub large: Tally,
    /// Those that are expandable.
    pub expandable: Tally,
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFacts {
    /// The value of its `cudaStream_t`; 0 for the default stream.
    pub handle: u64,
    /// Its segments.
    pub segments: Tally,
}

/// Live blocks of the same size from the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveGroup {
    /// The number.
    pub count: u64,
    /// The size of each.
    pub size: Bytes,
    /// The size requested for each; none before PyTorch 2.0.
    pub requested: Option<Bytes>,
    /// The call site of the requests.
    pub site: Site,
}

/// The history of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFacts {
    /// Entries.
    pub entries: u64,
    /// Entries by action, by name.
    pub by_action: Vec<(String, u64)>,
    /// From the first to the last entry; none before PyTorch 2.2.
    pub duration: Option<Nanos>,
    /// The requested and reserved bytes over the history.
    pub usage: DeviceUsage,
    /// Blocks that were in use when it began; none if it is not known.
    pub live_at_start: Option<Tally>,
    /// Segments at the same moment: after the first entries, where these may be the rest of an operation
    /// that began before them.
    pub reserved_at_start: Option<Bytes>,
}

impl HistoryFacts {
    /// Returns whether something was there when it began: recording was started later than the job,
    /// or only the newest entries were kept (`max_entries`). A snapshot does not say which.
    #[must_use]
    pub fn begins_warm(&self) -> bool {
        self.usage.reserved.start > Bytes::ZERO
    }
}

impl DeviceFacts {
    pub(super) fn of(
        snapshot: &Snapshot,
        device: DeviceIndex,
        config: Option<&AllocatorConfig>,
        largest: usize,
        notes: &mut Diagnostics,
    ) -> Self {
        let recording = Recording::new(snapshot, device);
        let mut facts = Self {
            device,
            segments: SegmentFacts::default(),
            live: Tally::default(),
            requested: Some(Bytes::ZERO),
            pending: Tally::default(),
            free: Tally::default(),
            largest_free: Bytes::ZERO,
            streams: Vec::new(),
            private_pools: Vec::new(),
            largest: Vec::new(),
            history: None,
        };
        let mut streams: BTreeMap<u64, Tally> = BTreeMap::new();
        let mut pools: BTreeMap<PoolId, Tally> = BTreeMap::new();
        for segment in recording.segments() {
            let size = segment.total;
            facts.segments.all.add(size);
            match segment.kind {
                SegmentKind::Small => facts.segments.small.add(size),
                SegmentKind::Large => facts.segments.large.add(size),
            }
            if segment.expandable {
                facts.segments.expandable.add(size);
            }
            let handle = snapshot.streams.get(segment.stream.index()).map_or(0, |s| s.0);
            streams.entry(handle).or_default().add(size);
            if segment.pool != PoolId::default() {
                pools.entry(segment.pool).or_default().add(size);
            }
            for block in &segment.blocks {
                facts.count(block);
            }
        }
        facts.streams = streams
            .into_iter()
            .map(|(handle, segments)| StreamFacts { handle, segments })
            .collect();
        facts.private_pools = pools.into_iter().collect();
        facts.largest = live_groups(&recording, largest);
        notes.extend(doubts(&recording));
        facts.history = history(&recording, config, notes);
        facts
    }

    fn count(&mut self, block: &SnapshotBlock) {
        match block.state {
            BlockState::ActiveAllocated => {
                self.live.add(block.size);
                let requested = self.requested.zip(block.requested);
                self.requested = requested.map(|(sum, more)| sum + more);
            }
            BlockState::ActivePendingFree => self.pending.add(block.size),
            BlockState::Inactive => {
                self.free.add(block.size);
                self.largest_free = self.largest_free.max(block.size);
            }
        }
    }
}

fn live_groups(recording: &Recording<'_>, largest: usize) -> Vec<LiveGroup> {
    let mut sites: BTreeMap<StackId, Site> = BTreeMap::new();
    let mut groups: BTreeMap<(Bytes, Option<Bytes>, Site), u64> = BTreeMap::new();
    let blocks = recording.segments().flat_map(|segment| &segment.blocks);
    for block in blocks.filter(|block| block.state == BlockState::ActiveAllocated) {
        let site = sites.entry(block.stack);
        let site = site.or_insert_with(|| Site::of(recording.snapshot, block.stack)).clone();
        *groups.entry((block.size, block.requested, site)).or_default() += 1;
    }
    let group = |((size, requested, site), count)| LiveGroup { count, size, requested, site };
    let mut groups: Vec<LiveGroup> = groups.into_iter().map(group).collect();
    groups.sort_by_key(|group| Reverse(group.size * group.count));
    groups.truncate(largest);
    groups
}

fn history(
    recording: &Recording<'_>,
    config: Option<&AllocatorConfig>,
    notes: &mut Diagnostics,
) -> Option<HistoryFacts> {
    let trace = recording.snapshot.trace(recording.device);
    let (first, last) = (trace.first()?, trace.last()?);
    let mut by_action: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in trace {
        *by_action.entry(action_name(recording.snapshot, entry.action)).or_default() += 1;
    }
    let (usage, odd) = recording.snapshot.usage(recording.device);
    notes.extend(odd);
    let start = config.map(|config| Start::of(recording, config));
    Some(HistoryFacts {
        entries: trace.len() as u64,
        by_action: by_action.into_iter().map(|(name, n)| (name.to_owned(), n)).collect(),
        duration: first.time.zip(last.time).map(|(first, last)| last - first),
        usage,
        live_at_start: start.as_ref().map(Start::held),
        reserved_at_start: start.as_ref().map(Start::reserved),
    })
}

/// The name in PyTorch's snapshots.
fn action_name(snapshot: &Snapshot, action: Action) -> &str {
    match action {
        Action::SegmentAlloc => "segment_alloc",
        Action::SegmentFree => "segment_free",
        Action::SegmentMap => "segment_map",
        Action::SegmentUnmap => "segment_unmap",
        Action::Alloc => "alloc",
        Action::FreeRequested => "free_requested",
        Action::FreeCompleted => "free_completed",
        Action::OutOfMemory { .. } => "oom",
        Action::Snapshot => "snapshot",
        Action::Annotate => "annotate",
        Action::Other(name) => snapshot.strings.resolve(name),
    }
}
