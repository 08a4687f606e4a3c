//! `xmem.snapshot-replay/2`.

use crate::findings::FindingDto;
use crate::setup::address_order;
use crate::site::SiteDto;
use crate::snapshot_info::json::ReleasesDto;
use serde::Serialize;
use xmem_eval::{
    Addresses, AllocatorAction, BlockRequest, Candidate, Counts, Difference, EndComparison,
    Figures, FirstDivergence, Pair, Place, PlaceContent, Rerun, SetupSource, StartFacts,
};

/// A replay of recorded requests, with the differences between simulator and recording.
#[derive(Serialize)]
pub struct SnapshotReplayDocument<'a> {
    schema: &'static str,
    snapshot: &'a str,
    device: u32,
    exact: bool,
    verdict: &'static str,
    allocator: AllocatorDto<'a>,
    start: StartDto,
    counts: CountsDto,
    divergences: DivergencesDto<'a>,
    end: Option<EndDto<'a>>,
    figures: FiguresDto,
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
struct AllocatorDto<'a> {
    torch: String,
    recorded_by: ReleasesDto,
    alloc_conf: &'a str,
    alloc_conf_from: &'static str,
    address_order: &'static str,
}

#[derive(Serialize)]
struct StartDto {
    segments: u64,
    reserved_bytes: u64,
    blocks: u64,
    allocated_bytes: u64,
    entries_skipped: u64,
    contradicting_entries: u64,
    uncertain_blocks: u64,
    refined_blocks: u64,
}

#[derive(Serialize)]
struct CountsDto {
    entries: u64,
    allocations: u64,
    frees: u64,
    device_allocs: u64,
    device_frees: u64,
    failures: u64,
    inferred: InferredDto,
}

/// Operations that the history does not contain and that are inferred.
#[derive(Serialize)]
struct InferredDto {
    empty_caches: u64,
    shared_frees: u64,
    device_failures: u64,
}

#[derive(Serialize)]
struct DivergencesDto<'a> {
    total: u64,
    outcome: u64,
    segments: u64,
    placement: u64,
    first: Option<FirstDto<'a>>,
}

#[derive(Serialize)]
struct FirstDto<'a> {
    entry: u32,
    difference: &'static str,
    request: Option<RequestDto>,
    site: SiteDto<'a>,
    recorded: Vec<EventDto>,
    simulated: Vec<EventDto>,
    before: Vec<EntryDto>,
    candidates: Vec<CandidateDto>,
    more_candidates: u64,
    block_at_address: Option<BlockAtAddressDto>,
}

#[derive(Serialize)]
struct RequestDto {
    requested_bytes: u64,
    rounded_bytes: u64,
    stream: u32,
}

#[derive(Serialize)]
struct EventDto {
    action: &'static str,
    place: Option<PlaceDto>,
    bytes: u64,
    stream: u32,
}

#[derive(Serialize)]
struct EntryDto {
    entry: u32,
    event: EventDto,
}

/// An address, or a segment with an offset.
#[derive(Serialize)]
struct PlaceDto {
    address: Option<String>,
    segment: Option<u32>,
    offset_bytes: Option<u64>,
}

#[derive(Serialize)]
struct CandidateDto {
    place: Option<PlaceDto>,
    bytes: u64,
    segment_bytes: u64,
}

#[derive(Serialize)]
struct BlockAtAddressDto {
    state: &'static str,
    block: Option<CandidateDto>,
}

#[derive(Serialize)]
struct EndDto<'a> {
    segments: u64,
    differing_segments: u64,
    blocks: u64,
    differing_blocks: u64,
    first: &'a [String],
}

#[derive(Serialize)]
struct FiguresDto {
    reserved_peak: PairDto,
    reserved_end: PairDto,
    allocated_end: PairDto,
    simulated_allocated_peak_bytes: u64,
}

#[derive(Serialize)]
struct PairDto {
    recorded_bytes: u64,
    simulated_bytes: u64,
}

impl<'a> SnapshotReplayDocument<'a> {
    /// The document of `snapshot`, the input as the user named it.
    #[must_use]
    pub fn new(snapshot: &'a str, rerun: &'a Rerun) -> Self {
        let [outcome, segments, placement] = rerun.divergences.by_difference;
        Self {
            schema: "xmem.snapshot-replay/2",
            snapshot,
            device: rerun.device.0,
            exact: rerun.is_exact(),
            verdict: rerun.verdict().name(),
            allocator: AllocatorDto {
                torch: rerun.setup.config.release.to_string(),
                recorded_by: rerun.setup.releases.into(),
                alloc_conf: &rerun.setup.text,
                alloc_conf_from: source(rerun.setup.source),
                address_order: match rerun.addresses {
                    Addresses::Recorded => "recorded",
                    Addresses::Order(order) => address_order(order),
                },
            },
            start: rerun.start.into(),
            counts: rerun.counts.into(),
            divergences: DivergencesDto {
                total: rerun.divergences.total(),
                outcome,
                segments,
                placement,
                first: rerun.divergences.first.as_deref().map(FirstDto::from),
            },
            end: rerun.end.as_ref().map(EndDto::from),
            figures: rerun.figures.into(),
            diagnostics: rerun.findings.iter().map(FindingDto::from).collect(),
        }
    }
}

fn source(source: SetupSource) -> &'static str {
    match source {
        SetupSource::Recorded => "snapshot",
        SetupSource::Given => "command_line",
        SetupSource::Assumed => "default",
    }
}

impl From<StartFacts> for StartDto {
    fn from(start: StartFacts) -> Self {
        Self {
            segments: start.segments,
            reserved_bytes: start.reserved.get(),
            blocks: start.blocks,
            allocated_bytes: start.allocated.get(),
            entries_skipped: start.uncertainty.left_out,
            contradicting_entries: start.uncertainty.contradictions,
            uncertain_blocks: start.uncertainty.open_ended,
            refined_blocks: start.uncertainty.refined,
        }
    }
}

impl From<Counts> for CountsDto {
    fn from(counts: Counts) -> Self {
        Self {
            entries: counts.entries,
            allocations: counts.allocations,
            frees: counts.frees,
            device_allocs: counts.device_allocs,
            device_frees: counts.device_frees,
            failures: counts.failures,
            inferred: InferredDto {
                empty_caches: counts.empty_caches,
                shared_frees: counts.shared_frees,
                device_failures: counts.refusals,
            },
        }
    }
}

impl<'a> From<&'a FirstDivergence> for FirstDto<'a> {
    fn from(first: &'a FirstDivergence) -> Self {
        let actions = |actions: &[AllocatorAction]| actions.iter().map(EventDto::from).collect();
        let before = first.before.iter();
        Self {
            entry: first.entry.0,
            difference: Difference::name(first.difference),
            request: first.request.map(RequestDto::from),
            site: (&first.site).into(),
            recorded: actions(&first.recorded),
            simulated: actions(&first.simulated),
            before: before
                .map(|(at, action)| EntryDto { entry: at.0, event: action.into() })
                .collect(),
            candidates: first.candidates.iter().map(CandidateDto::from).collect(),
            more_candidates: first.more_candidates,
            block_at_address: first.at_recorded_place.map(BlockAtAddressDto::from),
        }
    }
}

impl From<BlockRequest> for RequestDto {
    fn from(request: BlockRequest) -> Self {
        Self {
            requested_bytes: request.size.get(),
            rounded_bytes: request.rounded.get(),
            stream: request.stream.0,
        }
    }
}

impl From<&AllocatorAction> for EventDto {
    fn from(action: &AllocatorAction) -> Self {
        Self {
            action: action.kind.name(),
            place: place(action.place),
            bytes: action.size.get(),
            stream: action.stream.0,
        }
    }
}

fn place(place: Place) -> Option<PlaceDto> {
    match place {
        Place::Nowhere => None,
        Place::Address(_) => {
            Some(PlaceDto { address: Some(place.to_string()), segment: None, offset_bytes: None })
        }
        Place::Segment { number, offset } => Some(PlaceDto {
            address: None,
            segment: Some(number),
            offset_bytes: Some(offset.get()),
        }),
    }
}

impl From<&Candidate> for CandidateDto {
    fn from(candidate: &Candidate) -> Self {
        Self {
            place: place(candidate.place),
            bytes: candidate.size.get(),
            segment_bytes: candidate.segment.get(),
        }
    }
}

impl From<PlaceContent> for BlockAtAddressDto {
    fn from(content: PlaceContent) -> Self {
        let (state, block) = match &content {
            PlaceContent::Free(block) => ("free", Some(block)),
            PlaceContent::InUse(block) => ("in_use", Some(block)),
            PlaceContent::Nothing => ("no_segment", None),
        };
        Self { state, block: block.map(CandidateDto::from) }
    }
}

impl<'a> From<&'a EndComparison> for EndDto<'a> {
    fn from(end: &'a EndComparison) -> Self {
        Self {
            segments: end.segments,
            differing_segments: end.segments_that_differ,
            blocks: end.blocks,
            differing_blocks: end.blocks_that_differ,
            first: &end.first,
        }
    }
}

impl From<Figures> for FiguresDto {
    fn from(figures: Figures) -> Self {
        Self {
            reserved_peak: figures.reserved_peak.into(),
            reserved_end: figures.reserved_end.into(),
            allocated_end: figures.allocated_end.into(),
            simulated_allocated_peak_bytes: figures.allocated_peak.get(),
        }
    }
}

impl From<Pair> for PairDto {
    fn from(pair: Pair) -> Self {
        Self { recorded_bytes: pair.recorded.get(), simulated_bytes: pair.simulated.get() }
    }
}
