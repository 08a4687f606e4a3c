//! `xmem.diff/1`.

use super::DifferencePage;
use serde::Serialize;
use xmem_studies::difference::{
    ByteChange, ComparisonRun, DifferenceRow, Divergence, GroupFigures, RequestAction, RunRequest,
};

/// Two runs side by side: peaks, what is allocated at the peak by name, settings, and the first request at which they
/// part. Differences are those of B less A.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DifferenceDocument<'a> {
    schema: &'static str,
    /// The first run.
    a: RunDto<'a>,
    /// The second run.
    b: RunDto<'a>,
    /// The peaks of B less those of A.
    difference: PeaksDto<i64>,
    /// The limit of --fail-over; null without it.
    limit: Option<LimitDto>,
    /// Settings that are known of both runs, and differ.
    settings: Vec<SettingDto<'a>>,
    /// The key of the rows.
    #[cfg_attr(
        test,
        schemars(with = "crate::schemas::NameOf<xmem_studies::difference::DifferenceKey>")
    )]
    by: &'static str,
    /// The groups that grew or shrank at the peak of allocated memory, largest difference first.
    rows: Vec<RowDto<'a>>,
    /// What is not listed: further groups, and all that are the same in both.
    rest: RestDto,
    /// All groups: peak allocated. The rows and the rest add up to it.
    total: SumDto,
    /// Whether both runs make the same requests; null if either is an answer in JSON.
    same_requests: Option<bool>,
    /// The first request at which the runs part; null if they make the same, or if it is not known.
    divergence: Option<DivergenceDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunDto<'a> {
    /// The input, as given on the command line.
    input: &'a str,
    /// The verdict of `xmem replay`.
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem::Verdict>"))]
    verdict: &'static str,
    /// Its peaks.
    peak: PeaksDto<u64>,
    /// Where allocated memory peaks; null if nothing is allocated.
    peak_at: Option<PlaceDto<'a>>,
    /// Allocations and frees; null of an answer in JSON.
    requests: Option<u64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PeaksDto<N> {
    /// Peak allocated.
    allocated_bytes: N,
    /// Peak reserved.
    reserved_bytes: N,
    /// Peak reserved and the CUDA context.
    device_bytes: N,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlaceDto<'a> {
    /// The iteration, from 0; null before the first.
    iteration: Option<u32>,
    /// The phase; behind the recorded iterations, the part of the script.
    phase: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LimitDto {
    /// The peak that the limit is about.
    #[cfg_attr(test, schemars(extend("enum" = ["allocated", "reserved", "device"])))]
    figure: &'static str,
    /// The growth that is accepted, as a share of A or as a size.
    limit: String,
    /// Whether B needs more than that.
    exceeded: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SettingDto<'a> {
    /// The setting.
    setting: &'static str,
    /// Its value in A; empty for none.
    a: &'a str,
    /// Its value in B; empty for none.
    b: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RowDto<'a> {
    /// The name in A; null if it is in B only, empty where nothing is known of its blocks.
    name_a: Option<&'a str>,
    /// The name in B; null if it is in A only.
    name_b: Option<&'a str>,
    /// How the names belong together: equal; other line numbers or counters; another name for a part of equal structure
    /// or bytes; in one run only.
    #[cfg_attr(test, schemars(extend("enum" = ["same", "shifted", "renamed", "single"])))]
    matched: &'static str,
    /// In the first run.
    a: GroupDto,
    /// In the second run.
    b: GroupDto,
    /// Bytes of B less those of A.
    difference_bytes: i64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GroupDto {
    /// Bytes of its blocks.
    bytes: u64,
    /// Their number; null if an input is an answer in JSON.
    blocks: Option<u64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RestDto {
    /// Groups that grew or shrank and are not listed.
    groups: usize,
    /// In the first run.
    a: GroupDto,
    /// In the second run.
    b: GroupDto,
    /// Bytes of B less those of A.
    difference_bytes: i64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SumDto {
    /// In the first run.
    a: GroupDto,
    /// In the second run.
    b: GroupDto,
    /// Bytes of B less those of A.
    difference_bytes: i64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DivergenceDto<'a> {
    /// The number of the request, from 0.
    request: u64,
    a: Option<RequestDto<'a>>,
    b: Option<RequestDto<'a>>,
}

/// A request; null if the run ends before.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RequestDto<'a> {
    /// Null for a request of no bytes.
    #[cfg_attr(test, schemars(extend("enum" = ["alloc", "free", null])))]
    action: Option<&'static str>,
    /// Bytes that are requested, or freed.
    bytes: u64,
    /// The operator that allocates the block.
    op: Option<&'a str>,
    /// Its module.
    module: Option<&'a str>,
    /// Its Python line.
    line: Option<&'a str>,
    /// The iteration of the request, from 0.
    iteration: Option<u32>,
    /// The phase of the request.
    phase: &'static str,
    /// Bytes allocated after it.
    allocated_bytes: u64,
}

impl<'a> DifferenceDocument<'a> {
    /// The document of a comparison.
    #[must_use]
    pub fn new(page: &DifferencePage<'a>) -> Self {
        let difference = page.difference;
        let rest = difference.rest(page.top);
        Self {
            schema: "xmem.diff/1",
            a: run(page.names.0, page.runs.0, difference.requests.map(|count| count.0)),
            b: run(page.names.1, page.runs.1, difference.requests.map(|count| count.1)),
            difference: PeaksDto {
                allocated_bytes: difference.allocated.signed(),
                reserved_bytes: difference.reserved.signed(),
                device_bytes: difference.device.signed(),
            },
            limit: page.limit.map(|(limit, figure)| LimitDto {
                figure: figure.name(),
                limit: limit.to_string(),
                exceeded: page.is_beyond_limit(),
            }),
            settings: difference
                .settings
                .iter()
                .map(|other| SettingDto { setting: other.setting.name(), a: &other.a, b: &other.b })
                .collect(),
            by: difference.key.name(),
            rows: difference.rows.iter().take(page.top).map(row).collect(),
            rest: RestDto {
                groups: difference.rows.len().saturating_sub(page.top),
                a: rest.0.into(),
                b: rest.1.into(),
                difference_bytes: signed(rest),
            },
            total: SumDto {
                a: difference.total.0.into(),
                b: difference.total.1.into(),
                difference_bytes: signed(difference.total),
            },
            same_requests: difference.requests.map(|_| difference.divergence.is_none()),
            divergence: difference.divergence.as_deref().map(divergence),
        }
    }
}

fn run<'a>(input: &'a str, run: &'a ComparisonRun, requests: Option<u64>) -> RunDto<'a> {
    let peaks = &run.peaks;
    RunDto {
        input,
        verdict: run.verdict.name(),
        peak: PeaksDto {
            allocated_bytes: peaks.allocated.get(),
            reserved_bytes: peaks.reserved.get(),
            device_bytes: peaks.device.get(),
        },
        peak_at: run
            .peak_at
            .as_ref()
            .map(|(iteration, phase)| PlaceDto { iteration: iteration.map(|id| id.0), phase }),
        requests,
    }
}

fn row(row: &DifferenceRow) -> RowDto<'_> {
    RowDto {
        name_a: row.name_a.as_deref(),
        name_b: row.name_b.as_deref(),
        matched: row.matched.name(),
        a: row.a.into(),
        b: row.b.into(),
        difference_bytes: row.bytes().signed(),
    }
}

fn signed((a, b): (GroupFigures, GroupFigures)) -> i64 {
    ByteChange { a: a.bytes, b: b.bytes }.signed()
}

impl From<GroupFigures> for GroupDto {
    fn from(group: GroupFigures) -> Self {
        Self { bytes: group.bytes.get(), blocks: group.blocks }
    }
}

fn divergence(first: &Divergence) -> DivergenceDto<'_> {
    DivergenceDto {
        request: first.request,
        a: first.a.as_ref().map(request),
        b: first.b.as_ref().map(request),
    }
}

fn request(request: &RunRequest) -> RequestDto<'_> {
    fn known(text: &str) -> Option<&str> {
        Some(text).filter(|text| !text.is_empty())
    }
    RequestDto {
        action: request.kind.map(|kind| match kind {
            RequestAction::Allocation => "alloc",
            RequestAction::Free => "free",
        }),
        bytes: request.bytes.get(),
        op: known(&request.op),
        module: known(&request.module),
        line: known(&request.line),
        iteration: request.iteration.map(|id| id.0),
        phase: request.phase.name(),
        allocated_bytes: request.allocated.get(),
    }
}
