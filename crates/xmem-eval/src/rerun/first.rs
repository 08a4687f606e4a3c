//! The first step in which the simulator did something else, with what there was to choose from.

use super::compare::{Difference, Naming, Sides};
use super::place::{AllocatorAction, MemoryPlace};
use crate::recording::{HistoryStep, Recording, StepKind};
use xmem_simulator::{AllocatorConfig, BlockUse, EventAction, PoolKind, SegmentState};
use xmem_snapshot::EntryIndex;
use xmem_snapshot::Site;
use xmem_types::{Bytes, StreamId};

/// The first step in which the simulator did something else.
#[derive(Clone, Debug)]
pub struct FirstDivergence {
    /// The last trace entry of the step.
    pub entry: EntryIndex,
    /// In what way the two differ.
    pub difference: Difference,
    /// The requested size, also rounded; none for `empty_cache`.
    pub request: Option<BlockRequest>,
    /// The place in the program.
    pub site: Site,
    /// The actions of PyTorch.
    pub recorded: Vec<AllocatorAction>,
    /// The actions of the simulator.
    pub simulated: Vec<AllocatorAction>,
    /// The actions of both before, with the trace entry of each, oldest first.
    pub before: Vec<(EntryIndex, AllocatorAction)>,
    /// The free blocks that the request could have got, best fit first.
    pub candidates: Vec<Candidate>,
    /// The number of further candidates.
    pub more_candidates: u64,
    /// The content of the simulator's memory where PyTorch put the block; none if PyTorch did not
    /// put one anywhere.
    pub at_recorded_place: Option<PlaceContent>,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// Bytes that the program requested; of a request that failed, those that it was rounded to.
    pub size: Bytes,
    /// Bytes of the block.
    pub rounded: Bytes,
    /// The stream.
    pub stream: StreamId,
}

/// A free block of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The address.
    pub place: MemoryPlace,
    /// Its size.
    pub size: Bytes,
    /// The size of its segment.
    pub segment: Bytes,
}

/// The content of the simulator's memory at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceContent {
    /// A free block that holds the place.
    Free(Candidate),
    /// A block in use.
    InUse(Candidate),
    /// No segment.
    Nothing,
}

/// The numbers of entries before the step and of candidates that are listed.
const ACTIONS_BEFORE: usize = 6;
const MAX_CANDIDATES: usize = 6;

/// The recorded steps, with the allocator that took them.
#[derive(Clone, Copy)]
pub(super) struct RecordedSteps<'r, 's> {
    pub(super) recording: &'r Recording<'s>,
    pub(super) steps: &'r [HistoryStep],
    pub(super) config: &'r AllocatorConfig,
}

impl FirstDivergence {
    /// The step at position `at`, with the allocator's state before it.
    pub(super) fn of(
        recorded: RecordedSteps<'_, '_>,
        at: usize,
        sides: Sides,
        difference: Difference,
        state: &[SegmentState],
        naming: &Naming,
    ) -> Self {
        let RecordedSteps { recording, steps, config } = recorded;
        let step = &steps[at];
        let trace = recording.trace();
        let last = step.entries.end - 1;
        let request = block_request(config, step);
        let (candidates, more_candidates) = candidates(config, request, state, naming);
        let first = step.entries.start.saturating_sub(ACTIONS_BEFORE);
        let before = (first..step.entries.start).filter_map(|row| {
            let event = recording.event(&trace[row])?;
            Some((recording.index(row), naming.recorded.unchanged(event)))
        });
        let put = sides.recorded.iter().find(|action| action.kind == EventAction::Alloc);
        let at_recorded_place = put.map(|action| content_at(action.place, state, naming));
        Self {
            entry: recording.index(last),
            difference,
            request,
            site: Site::of(recording.snapshot, trace[last].stack),
            recorded: sides.recorded,
            simulated: sides.simulated,
            before: before.collect(),
            candidates,
            more_candidates,
            at_recorded_place,
        }
    }
}

fn block_request(config: &AllocatorConfig, step: &HistoryStep) -> Option<BlockRequest> {
    match step.kind {
        StepKind::Alloc { size, stream, .. } => {
            Some(BlockRequest { size, rounded: config.rounded(size), stream })
        }
        StepKind::Failed { rounded, stream } => {
            Some(BlockRequest { size: rounded, rounded, stream })
        }
        StepKind::Free { .. } | StepKind::Complete { .. } | StepKind::EmptyCache => None,
    }
}

fn candidates(
    config: &AllocatorConfig,
    request: Option<BlockRequest>,
    state: &[SegmentState],
    naming: &Naming,
) -> (Vec<Candidate>, u64) {
    let Some(request) = request else { return (Vec::new(), 0) };
    let small = request.rounded <= config.small_size;
    let kind = if small { PoolKind::Small } else { PoolKind::Large };
    let mut fitting: Vec<_> = state
        .iter()
        .filter(|segment| segment.stream == request.stream && segment.pool == kind)
        .flat_map(|segment| segment.blocks.iter().map(move |block| (block, segment)))
        .filter(|(block, _)| block.used == BlockUse::Free && block.size >= request.rounded)
        .collect();
    fitting.sort_by_key(|(block, _)| (block.size, block.addr));
    let more = fitting.len().saturating_sub(MAX_CANDIDATES) as u64;
    let list = fitting.into_iter().take(MAX_CANDIDATES).map(|(block, segment)| Candidate {
        place: naming.simulated.place(block.addr),
        size: block.size,
        segment: segment.size,
    });
    (list.collect(), more)
}

/// The content of the simulator's memory at a place of the recording.
fn content_at(place: MemoryPlace, state: &[SegmentState], naming: &Naming) -> PlaceContent {
    let key = |place: MemoryPlace| match place {
        MemoryPlace::Segment { number, offset } => Some((Some(number), offset.get())),
        MemoryPlace::Address(addr) => Some((None, addr.0)),
        MemoryPlace::Nowhere => None,
    };
    let Some((segment, wanted)) = key(place) else { return PlaceContent::Nothing };
    let blocks = state.iter().flat_map(|segment| segment.blocks.iter().map(move |b| (b, segment)));
    for (block, range) in blocks {
        let at = naming.simulated.place(block.addr);
        let Some((number, start)) = key(at) else { continue };
        if number != segment || wanted < start || wanted - start >= block.size.get() {
            continue;
        }
        let found = Candidate { place: at, size: block.size, segment: range.size };
        return match block.used {
            BlockUse::Free => PlaceContent::Free(found),
            BlockUse::Allocated | BlockUse::PendingFree => PlaceContent::InUse(found),
        };
    }
    PlaceContent::Nothing
}
