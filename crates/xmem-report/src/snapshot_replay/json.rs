//! `xmem.snapshot-replay/2`.

use crate::findings::FindingDto;
use crate::site::SiteDto;
use crate::snapshot_info::json::ReleasesDto;
use serde::Serialize;
use xmem_eval::{
    Addresses, AllocatorAction, BlockRequest, Candidate, Counts, Difference, EndComparison,
    Figures, FirstDivergence, MemoryPlace, Pair, PlaceContent, Rerun, SetupSource, StartFacts,
};

/// The requests of a memory snapshot run again through the simulator, and what it did differently.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SnapshotReplayDocument<'a> {
    schema: &'static str,
    /// The input, as given on the command line.
    snapshot: &'a str,
    /// The index of the recorded device.
    device: u32,
    /// true if the simulator did the same as PyTorch in every step.
    exact: bool,
    /// exact or different; withheld if nothing was replayed, or the snapshot holds what no allocator leaves behind
    /// (diagnostics of severity serious).
    #[cfg_attr(test, schemars(extend("enum" = ["exact", "different", "withheld"])))]
    verdict: &'static str,
    /// The simulated allocator.
    allocator: AllocatorDto<'a>,
    /// The state at the beginning of the history, reconstructed backwards from its end.
    start: StartDto,
    /// Number of operations.
    counts: CountsDto,
    /// Steps in which simulator and PyTorch differ; later ones may be a consequence of the first.
    divergences: DivergencesDto<'a>,
    /// Segments and blocks at the end; null where recording ended before the snapshot.
    end: Option<EndDto<'a>>,
    /// Figures on both sides.
    figures: FiguresDto,
    /// Odd content.
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AllocatorDto<'a> {
    /// PyTorch release.
    torch: String,
    /// Releases that write such a snapshot, by its keys.
    recorded_by: ReleasesDto,
    /// Options as text.
    alloc_conf: &'a str,
    /// The origin of the options.
    #[cfg_attr(test, schemars(extend("enum" = ["snapshot", "command_line", "default"])))]
    alloc_conf_from: &'static str,
    /// The order of the addresses of new segments.
    #[cfg_attr(test, schemars(extend("enum" = ["recorded", "driver", "ascending", "descending"])))]
    address_order: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StartDto {
    /// Segments.
    segments: u64,
    /// Their bytes.
    reserved_bytes: u64,
    /// Blocks in use.
    blocks: u64,
    /// Their bytes.
    allocated_bytes: u64,
    /// Entries at the beginning that may be the rest of something.
    entries_skipped: u64,
    /// Entries that do not go together with the segments at the end.
    contradicting_entries: u64,
    /// Blocks freed later, up to 1 MiB of free memory behind which may have belonged to them.
    uncertain_blocks: u64,
    /// Of those, blocks for which later blocks show that some did.
    refined_blocks: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CountsDto {
    /// Entries of the history.
    entries: u64,
    /// Allocated blocks.
    allocations: u64,
    /// Freed blocks.
    frees: u64,
    /// Allocated segments and mapped pages.
    device_allocs: u64,
    /// Released segments and unmapped pages.
    device_frees: u64,
    /// Allocations that failed.
    failures: u64,
    /// Operations that the history does not contain and that are inferred.
    inferred: InferredDto,
}

/// Operations that the history does not contain and that are inferred.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct InferredDto {
    /// Calls of empty_cache: segments were released outside of an allocation.
    empty_caches: u64,
    /// Frees that completed only later: another stream used the block.
    shared_frees: u64,
    /// Failed cudaMalloc calls: segments were released during an allocation.
    device_failures: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DivergencesDto<'a> {
    /// All.
    total: u64,
    /// Only one of the two failed.
    outcome: u64,
    /// Other segments or pages were allocated or released.
    segments: u64,
    /// The block is elsewhere.
    placement: u64,
    /// The first one.
    first: Option<FirstDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FirstDto<'a> {
    /// Last history entry of the step.
    entry: u32,
    /// In what way.
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem_eval::Difference>"))]
    difference: &'static str,
    /// The request; null for empty_cache.
    request: Option<RequestDto>,
    site: SiteDto<'a>,
    /// The events of PyTorch.
    recorded: Vec<EventDto>,
    /// The events of the simulator.
    simulated: Vec<EventDto>,
    /// The preceding events, equal in both, oldest first.
    before: Vec<EntryDto>,
    /// Free blocks of the simulator that were large enough, best fit first.
    candidates: Vec<CandidateDto>,
    /// Number of further ones.
    more_candidates: u64,
    /// The simulator's block at the address of PyTorch's block.
    block_at_address: Option<BlockAtAddressDto>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RequestDto {
    /// Asked for; of a request that failed, rounded.
    requested_bytes: u64,
    /// Rounded.
    rounded_bytes: u64,
    /// Row of the stream.
    stream: u32,
}

/// One thing that an allocator did.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EventDto {
    /// PyTorch's name (`alloc`, `segment_free`).
    action: &'static str,
    /// The place; null for an allocation that failed.
    place: Option<PlaceDto>,
    /// Requested for blocks, real for segments, rounded for `oom`.
    bytes: u64,
    /// Row of the stream; 0 is the default stream.
    stream: u32,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EntryDto {
    /// History entry.
    entry: u32,
    event: EventDto,
}

/// An address, or a segment (numbered in order of allocation) with an offset.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlaceDto {
    /// Hexadecimal.
    address: Option<String>,
    /// Number.
    segment: Option<u32>,
    /// From its start.
    offset_bytes: Option<u64>,
}

/// A block of the simulator.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CandidateDto {
    /// The place.
    place: Option<PlaceDto>,
    /// Its size.
    bytes: u64,
    /// Its segment's size.
    segment_bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BlockAtAddressDto {
    /// Role.
    #[cfg_attr(test, schemars(extend("enum" = ["free", "in_use", "no_segment"])))]
    state: &'static str,
    /// The block.
    block: Option<CandidateDto>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EndDto<'a> {
    /// Segments of the snapshot.
    segments: u64,
    /// Those that are not the same.
    differing_segments: u64,
    /// Blocks of the snapshot.
    blocks: u64,
    /// Those that are not the same.
    differing_blocks: u64,
    /// The first differences, in words.
    first: &'a [String],
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FiguresDto {
    reserved_peak: PairDto,
    reserved_end: PairDto,
    allocated_end: PairDto,
    /// Peak allocated in the simulation; a history does not contain it.
    simulated_allocated_peak_bytes: u64,
}

/// A figure on both sides.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PairDto {
    /// As recorded.
    recorded_bytes: u64,
    /// As simulated.
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
                    Addresses::Order(order) => order.name(),
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

fn place(place: MemoryPlace) -> Option<PlaceDto> {
    match place {
        MemoryPlace::Nowhere => None,
        MemoryPlace::Address(_) => {
            Some(PlaceDto { address: Some(place.to_string()), segment: None, offset_bytes: None })
        }
        MemoryPlace::Segment { number, offset } => Some(PlaceDto {
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
