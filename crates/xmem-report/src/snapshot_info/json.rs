//! `xmem.snapshot-info/2`.

use crate::findings::FindingDto;
use crate::site::SiteDto;
use serde::Serialize;
use xmem_eval::{DeviceFacts, HistoryFacts, LiveGroup, SnapshotFacts, StreamFacts, Tally};

/// The contents of a memory snapshot.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SnapshotInfoDocument<'a> {
    schema: &'static str,
    /// The input, as given on the command line.
    snapshot: &'a str,
    /// Releases that write such a snapshot, by its keys.
    torch: ReleasesDto,
    /// Allocator options as text; null before PyTorch 2.3.
    alloc_conf: Option<&'a str>,
    /// Settings that are not PyTorch's defaults.
    non_default_settings: Vec<SettingDto<'a>>,
    /// Distinct call stacks.
    call_stacks: u64,
    /// record_function scopes.
    scopes: Vec<ScopeDto<'a>>,
    /// Devices that have segments or a history.
    devices: Vec<DeviceDto<'a>>,
    /// Odd content.
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ReleasesDto {
    /// The first one.
    first: String,
    /// The last one known, or the one in between that is assumed.
    last: String,
}

impl From<(xmem::TorchVersion, xmem::TorchVersion)> for ReleasesDto {
    fn from((first, last): (xmem::TorchVersion, xmem::TorchVersion)) -> Self {
        Self { first: first.to_string(), last: last.to_string() }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SettingDto<'a> {
    /// Name.
    name: &'a str,
    /// Value as text.
    value: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ScopeDto<'a> {
    /// Name.
    name: &'a str,
    /// Number of occurrences.
    count: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DeviceDto<'a> {
    /// Number.
    device: u32,
    /// Segments, or of expandable ones contiguous mapped ranges.
    segments: SegmentsDto,
    live: BlocksDto,
    /// Requested bytes of the blocks in use; null before PyTorch 2.0.
    requested_bytes: Option<u64>,
    pending: BlocksDto,
    free: BlocksDto,
    /// The largest free block.
    largest_free_bytes: u64,
    /// Streams that have segments.
    streams: Vec<StreamDto>,
    /// Private pools that have segments.
    private_pools: Vec<PrivatePoolDto>,
    /// Blocks in use of the same size from the same call site, largest total first.
    largest_blocks: Vec<GroupDto<'a>>,
    /// The history of allocator events; null if it was not recorded.
    history: Option<HistoryDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SegmentsDto {
    all: BlocksDto,
    small: BlocksDto,
    large: BlocksDto,
    expandable: BlocksDto,
}

/// A number of blocks or segments, and their bytes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BlocksDto {
    /// Number.
    count: u64,
    /// Their bytes.
    bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StreamDto {
    /// cudaStream_t, hexadecimal; 0x0 is the default stream.
    handle: String,
    segments: BlocksDto,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PrivatePoolDto {
    /// MempoolId_t.
    id: [u64; 2],
    segments: BlocksDto,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GroupDto<'a> {
    /// Number.
    count: u64,
    /// Size of each.
    block_bytes: u64,
    /// Requested bytes of each; null before PyTorch 2.0.
    requested_bytes: Option<u64>,
    site: SiteDto<'a>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HistoryDto<'a> {
    /// Entries.
    entries: u64,
    /// Number of entries by action.
    by_action: Vec<ActionDto<'a>>,
    /// From the first to the last entry; null before PyTorch 2.2.
    #[cfg_attr(test, schemars(range(min = 0)))]
    duration_ns: Option<i64>,
    /// true if memory was reserved when the history began.
    begins_with_memory: bool,
    /// Blocks in use at the beginning, reconstructed backwards; null if the options cannot be simulated.
    live_at_start: Option<BlocksDto>,
    requested: UsageDto,
    reserved: UsageDto,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ActionDto<'a> {
    /// PyTorch's name.
    action: &'a str,
    /// Number.
    count: u64,
}

/// A figure over the history.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UsageDto {
    /// At the beginning of the history.
    start_bytes: u64,
    /// The peak.
    peak_bytes: u64,
    /// At the snapshot.
    end_bytes: u64,
}

impl<'a> SnapshotInfoDocument<'a> {
    /// The document of `snapshot`, the input as the user named it.
    #[must_use]
    pub fn new(snapshot: &'a str, facts: &'a SnapshotFacts) -> Self {
        let settings = facts.unusual_settings.iter();
        let scopes = facts.scopes.iter();
        Self {
            schema: "xmem.snapshot-info/2",
            snapshot,
            torch: facts.releases.into(),
            alloc_conf: facts.options.as_deref(),
            non_default_settings: settings
                .map(|(name, value)| SettingDto { name, value })
                .collect(),
            call_stacks: facts.stacks,
            scopes: scopes.map(|(name, count)| ScopeDto { name, count: *count }).collect(),
            devices: facts.devices.iter().map(DeviceDto::from).collect(),
            diagnostics: facts.findings.iter().map(FindingDto::from).collect(),
        }
    }
}

impl<'a> From<&'a DeviceFacts> for DeviceDto<'a> {
    fn from(facts: &'a DeviceFacts) -> Self {
        let pools = facts.private_pools.iter();
        Self {
            device: facts.device.0,
            segments: SegmentsDto {
                all: facts.segments.all.into(),
                small: facts.segments.small.into(),
                large: facts.segments.large.into(),
                expandable: facts.segments.expandable.into(),
            },
            live: facts.live.into(),
            requested_bytes: facts.requested.map(xmem::Bytes::get),
            pending: facts.pending.into(),
            free: facts.free.into(),
            largest_free_bytes: facts.largest_free.get(),
            streams: facts.streams.iter().map(StreamDto::from).collect(),
            private_pools: pools
                .map(|(id, segments)| PrivatePoolDto {
                    id: [id.0, id.1],
                    segments: (*segments).into(),
                })
                .collect(),
            largest_blocks: facts.largest.iter().map(GroupDto::from).collect(),
            history: facts.history.as_ref().map(HistoryDto::from),
        }
    }
}

impl From<Tally> for BlocksDto {
    fn from(facts: Tally) -> Self {
        Self { count: facts.count, bytes: facts.bytes.get() }
    }
}

impl From<&StreamFacts> for StreamDto {
    fn from(facts: &StreamFacts) -> Self {
        Self { handle: format!("{:#x}", facts.handle), segments: facts.segments.into() }
    }
}

impl<'a> From<&'a LiveGroup> for GroupDto<'a> {
    fn from(group: &'a LiveGroup) -> Self {
        Self {
            count: group.count,
            block_bytes: group.size.get(),
            requested_bytes: group.requested.map(xmem::Bytes::get),
            site: (&group.site).into(),
        }
    }
}

impl<'a> From<&'a HistoryFacts> for HistoryDto<'a> {
    fn from(facts: &'a HistoryFacts) -> Self {
        let actions = facts.by_action.iter();
        Self {
            entries: facts.entries,
            by_action: actions.map(|(action, n)| ActionDto { action, count: *n }).collect(),
            duration_ns: facts.duration.map(xmem::types::Nanos::get),
            begins_with_memory: facts.begins_warm(),
            live_at_start: facts.live_at_start.map(BlocksDto::from),
            requested: facts.usage.requested.into(),
            reserved: facts.usage.reserved.into(),
        }
    }
}

impl From<xmem_eval::Usage> for UsageDto {
    fn from(usage: xmem_eval::Usage) -> Self {
        Self {
            start_bytes: usage.start.get(),
            peak_bytes: usage.peak.get(),
            end_bytes: usage.end.get(),
        }
    }
}
