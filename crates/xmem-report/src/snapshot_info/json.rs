//! `xmem.snapshot-info/2`.

use crate::findings::FindingDto;
use crate::site::SiteDto;
use serde::Serialize;
use xmem_eval::{DeviceFacts, HistoryFacts, LiveGroup, SnapshotFacts, StreamFacts, Tally};

/// The contents of a memory snapshot.
#[derive(Serialize)]
pub struct SnapshotInfoDocument<'a> {
    schema: &'static str,
    snapshot: &'a str,
    torch: ReleasesDto,
    alloc_conf: Option<&'a str>,
    non_default_settings: Vec<SettingDto<'a>>,
    call_stacks: u64,
    scopes: Vec<ScopeDto<'a>>,
    devices: Vec<DeviceDto<'a>>,
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
pub(crate) struct ReleasesDto {
    first: String,
    last: String,
}

impl From<(xmem::TorchVersion, xmem::TorchVersion)> for ReleasesDto {
    fn from((first, last): (xmem::TorchVersion, xmem::TorchVersion)) -> Self {
        Self { first: first.to_string(), last: last.to_string() }
    }
}

#[derive(Serialize)]
struct SettingDto<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct ScopeDto<'a> {
    name: &'a str,
    count: u64,
}

#[derive(Serialize)]
struct DeviceDto<'a> {
    device: u32,
    segments: SegmentsDto,
    live: BlocksDto,
    requested_bytes: Option<u64>,
    pending: BlocksDto,
    free: BlocksDto,
    largest_free_bytes: u64,
    streams: Vec<StreamDto>,
    private_pools: Vec<PrivatePoolDto>,
    largest_blocks: Vec<GroupDto<'a>>,
    history: Option<HistoryDto<'a>>,
}

#[derive(Serialize)]
struct SegmentsDto {
    all: BlocksDto,
    small: BlocksDto,
    large: BlocksDto,
    expandable: BlocksDto,
}

/// A number of blocks or segments, and their bytes.
#[derive(Serialize)]
struct BlocksDto {
    count: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct StreamDto {
    handle: String,
    segments: BlocksDto,
}

#[derive(Serialize)]
struct PrivatePoolDto {
    id: [u64; 2],
    segments: BlocksDto,
}

#[derive(Serialize)]
struct GroupDto<'a> {
    count: u64,
    block_bytes: u64,
    requested_bytes: Option<u64>,
    site: SiteDto<'a>,
}

#[derive(Serialize)]
struct HistoryDto<'a> {
    entries: u64,
    by_action: Vec<ActionDto<'a>>,
    duration_ns: Option<i64>,
    begins_with_memory: bool,
    live_at_start: Option<BlocksDto>,
    requested: UsageDto,
    reserved: UsageDto,
}

#[derive(Serialize)]
struct ActionDto<'a> {
    action: &'a str,
    count: u64,
}

#[derive(Serialize)]
struct UsageDto {
    start_bytes: u64,
    peak_bytes: u64,
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
