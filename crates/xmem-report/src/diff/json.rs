//! `xmem.diff/1`.

use super::DifferencePage;
use serde::Serialize;
use xmem_studies::difference::{
    ByteChange, ComparisonRun, DifferenceRow, Divergence, GroupFigures, RequestAction, RunRequest,
};

/// A comparison as a document of schema `xmem.diff/1`.
#[derive(Serialize)]
pub struct DifferenceDocument<'a> {
    schema: &'static str,
    a: RunDto<'a>,
    b: RunDto<'a>,
    difference: PeaksDto<i64>,
    limit: Option<LimitDto>,
    settings: Vec<SettingDto<'a>>,
    by: &'static str,
    rows: Vec<RowDto<'a>>,
    rest: RestDto,
    total: SumDto,
    same_requests: Option<bool>,
    divergence: Option<DivergenceDto<'a>>,
}

#[derive(Serialize)]
struct RunDto<'a> {
    input: &'a str,
    verdict: &'static str,
    peak: PeaksDto<u64>,
    peak_at: Option<PlaceDto<'a>>,
    requests: Option<u64>,
}

#[derive(Serialize)]
struct PeaksDto<N> {
    allocated_bytes: N,
    reserved_bytes: N,
    device_bytes: N,
}

#[derive(Serialize)]
struct PlaceDto<'a> {
    iteration: Option<u32>,
    phase: &'a str,
}

#[derive(Serialize)]
struct LimitDto {
    figure: &'static str,
    limit: String,
    exceeded: bool,
}

#[derive(Serialize)]
struct SettingDto<'a> {
    setting: &'static str,
    a: &'a str,
    b: &'a str,
}

#[derive(Serialize)]
struct RowDto<'a> {
    name_a: Option<&'a str>,
    name_b: Option<&'a str>,
    matched: &'static str,
    a: GroupDto,
    b: GroupDto,
    difference_bytes: i64,
}

#[derive(Serialize)]
struct GroupDto {
    bytes: u64,
    blocks: Option<u64>,
}

#[derive(Serialize)]
struct RestDto {
    groups: usize,
    a: GroupDto,
    b: GroupDto,
    difference_bytes: i64,
}

#[derive(Serialize)]
struct SumDto {
    a: GroupDto,
    b: GroupDto,
    difference_bytes: i64,
}

#[derive(Serialize)]
struct DivergenceDto<'a> {
    request: u64,
    a: Option<RequestDto<'a>>,
    b: Option<RequestDto<'a>>,
}

#[derive(Serialize)]
struct RequestDto<'a> {
    action: Option<&'static str>,
    bytes: u64,
    op: Option<&'a str>,
    module: Option<&'a str>,
    line: Option<&'a str>,
    iteration: Option<u32>,
    phase: &'static str,
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
