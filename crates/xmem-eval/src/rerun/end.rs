//! The segments and blocks at the end, on both sides.

use super::compare::Naming;
use super::place::{MemoryPlace, Names};
use crate::recording::{Recording, kind_of, private_pool};
use std::collections::BTreeMap;
use xmem_simulator::{BlockUse, PoolKind, PrivatePoolId, SegmentState};
use xmem_snapshot::BlockState;
use xmem_types::{Addr, Bytes, StreamId};

/// The comparison of segments and blocks at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndComparison {
    /// Segments that the snapshot has.
    pub segments: u64,
    /// Blocks that the snapshot has.
    pub blocks: u64,
    /// Segments that are not the same: missing, additional, or of another size, stream or pool.
    pub segments_that_differ: u64,
    /// Blocks that are not the same.
    pub blocks_that_differ: u64,
    /// The first differences, in words.
    pub first: Vec<String>,
}

/// The highest number of differences that are put into words.
const MAX_DESCRIBED: usize = 8;

/// A segment apart from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    size: Bytes,
    stream: StreamId,
    kind: PoolKind,
    pool: Option<PrivatePoolId>,
    expandable: bool,
}

/// A block apart from its place; the requested size of a free one means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    size: Bytes,
    used: BlockUse,
    requested: Option<Bytes>,
}

#[derive(Default)]
struct Layout {
    segments: BTreeMap<MemoryPlace, Segment>,
    blocks: BTreeMap<MemoryPlace, Block>,
}

impl EndComparison {
    pub(super) fn of(
        recording: &Recording<'_>,
        naming: &Naming,
        simulated: &[SegmentState],
    ) -> Self {
        let recorded = recorded(recording, &naming.recorded);
        let simulated = simulate(simulated, &naming.simulated);
        let mut described = Vec::new();
        let segments = differences(
            "segment",
            &recorded.segments,
            &simulated.segments,
            &mut described,
            describe_segment,
        );
        let blocks = differences(
            "block",
            &recorded.blocks,
            &simulated.blocks,
            &mut described,
            describe_block,
        );
        Self {
            segments: recorded.segments.len() as u64,
            blocks: recorded.blocks.len() as u64,
            segments_that_differ: segments,
            blocks_that_differ: blocks,
            first: described,
        }
    }

    /// Returns whether all is the same.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.segments_that_differ == 0 && self.blocks_that_differ == 0
    }
}

fn recorded(recording: &Recording<'_>, names: &Names) -> Layout {
    let mut layout = Layout::default();
    let place = |addr: Addr| names.place(recording.to_simulated(addr));
    for segment in recording.segments() {
        let what = Segment {
            size: segment.total,
            stream: segment.stream,
            kind: kind_of(segment.kind),
            pool: private_pool(recording.snapshot, segment.pool),
            expandable: segment.expandable,
        };
        layout.segments.insert(place(segment.address), what);
        for block in &segment.blocks {
            let used = match block.state {
                BlockState::ActiveAllocated => BlockUse::Allocated,
                BlockState::ActivePendingFree => BlockUse::PendingFree,
                BlockState::Inactive => BlockUse::Free,
            };
            let requested = block.requested.filter(|_| used != BlockUse::Free);
            layout.blocks.insert(place(block.address), Block { size: block.size, used, requested });
        }
    }
    layout
}

fn simulate(segments: &[SegmentState], names: &Names) -> Layout {
    let mut layout = Layout::default();
    for segment in segments {
        let what = Segment {
            size: segment.size,
            stream: segment.stream,
            kind: segment.pool,
            pool: segment.private_pool,
            expandable: segment.expandable,
        };
        layout.segments.insert(names.place(segment.addr), what);
        for block in &segment.blocks {
            let requested = (block.used != BlockUse::Free).then_some(block.requested);
            let what = Block { size: block.size, used: block.used, requested };
            layout.blocks.insert(names.place(block.addr), what);
        }
    }
    layout
}

/// Counts what is not the same in both, and puts the first of it into words.
fn differences<T: PartialEq>(
    noun: &str,
    recorded: &BTreeMap<MemoryPlace, T>,
    simulated: &BTreeMap<MemoryPlace, T>,
    described: &mut Vec<String>,
    describe: fn(&T) -> String,
) -> u64 {
    let mut places: Vec<MemoryPlace> = recorded.keys().chain(simulated.keys()).copied().collect();
    places.sort_unstable();
    places.dedup();
    let mut count = 0;
    for place in places {
        let (theirs, ours) = (recorded.get(&place), simulated.get(&place));
        if theirs == ours {
            continue;
        }
        count += 1;
        if described.len() < MAX_DESCRIBED {
            let word = |side: Option<&T>| side.map_or_else(|| "none".to_owned(), describe);
            described.push(format!(
                "{noun} at {place}: {}, simulated {}",
                word(theirs),
                word(ours)
            ));
        }
    }
    count
}

fn describe_segment(segment: &Segment) -> String {
    let kind = match segment.kind {
        PoolKind::Small => "small",
        PoolKind::Large => "large",
    };
    let more = if segment.expandable { ", expandable" } else { "" };
    let pool = segment.pool.map_or_else(String::new, |pool| format!(", private pool {}", pool.0));
    format!("{} ({kind}, stream {}{more}{pool})", segment.size, segment.stream.0)
}

fn describe_block(block: &Block) -> String {
    let asked = block.requested.map_or_else(String::new, |n| format!(", {} B requested", n.get()));
    format!("{} B {}{asked}", block.size.get(), block.used.name())
}
