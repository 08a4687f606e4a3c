//! `xmem.validate/1`.

use crate::Comparison;
use crate::findings::FindingDto;
use crate::places::PlaceDto;
use crate::site::SiteDto;
use serde::Serialize;
use xmem_eval::{
    CurveDistance, DifferenceGroup, Judged, Moment, PhasePeaks, RequestCounts, RoleBytes,
    Validation,
};

/// A comparison of an estimate with a recording.
#[derive(Serialize)]
pub struct ValidateDocument<'a> {
    schema: &'static str,
    trace: &'a str,
    snapshot: &'a str,
    device: &'a str,
    recorded_device: u32,
    within_tolerance: bool,
    tolerance: f64,
    recording_reproduced: bool,
    peaks: PeaksDto,
    blocks: CountsDto,
    phases: Vec<PhaseDto>,
    curves: Vec<CurveDto>,
    recorded_peak: Option<MomentDto<'a>>,
    roles: Vec<RoleDto>,
    differences: Vec<DifferenceDto<'a>>,
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
struct PeaksDto {
    allocated: JudgedDto,
    requested: JudgedDto,
    reserved: JudgedDto,
}

#[derive(Serialize)]
struct JudgedDto {
    estimated_bytes: u64,
    recorded_bytes: u64,
    error_bytes: i64,
}

#[derive(Serialize)]
struct CountsDto {
    estimated: u64,
    recorded: u64,
    same: u64,
    moved: u64,
    resized: u64,
    extra: u64,
    missing: u64,
    outside: u64,
}

#[derive(Serialize)]
struct PhaseDto {
    iteration: Option<u32>,
    phase: &'static str,
    allocated: JudgedDto,
}

#[derive(Serialize)]
struct CurveDto {
    iteration: u32,
    points: u64,
    allocated: f64,
    reserved: f64,
}

#[derive(Serialize)]
struct MomentDto<'a> {
    entry: u32,
    allocated: JudgedDto,
    place: PlaceDto<'a>,
    site: SiteDto<'a>,
    estimated_peak: Option<PlaceDto<'a>>,
}

#[derive(Serialize)]
struct RoleDto {
    role: Option<&'static str>,
    bytes: JudgedDto,
}

#[derive(Serialize)]
struct DifferenceDto<'a> {
    kind: &'static str,
    count: u64,
    count_at_peak: u64,
    at_peak_bytes: i64,
    bytes: u64,
    estimated_bytes: Option<u64>,
    recorded_bytes: Option<u64>,
    role: Option<&'static str>,
    rule: Option<&'static str>,
    place: Option<PlaceDto<'a>>,
    after: Option<PlaceDto<'a>>,
    site: SiteDto<'a>,
}

impl<'a> ValidateDocument<'a> {
    /// The document of a comparison.
    #[must_use]
    pub fn new(inputs: &Comparison<'a>, judged: &'a Validation) -> Self {
        Self {
            schema: "xmem.validate/1",
            trace: inputs.trace,
            snapshot: inputs.snapshot,
            device: inputs.device,
            recorded_device: judged.rerun.device.0,
            within_tolerance: judged.is_within(inputs.tolerance),
            tolerance: inputs.tolerance,
            recording_reproduced: judged.rerun.is_exact(),
            peaks: PeaksDto {
                allocated: judged.peaks.allocated.into(),
                requested: judged.peaks.requested.into(),
                reserved: judged.peaks.reserved.into(),
            },
            blocks: judged.requests.into(),
            phases: judged.phases.iter().map(PhaseDto::from).collect(),
            curves: judged.curves.iter().map(CurveDto::from).collect(),
            recorded_peak: judged.moment.as_ref().map(MomentDto::from),
            roles: judged.roles.iter().map(RoleDto::from).collect(),
            differences: judged.differences.iter().map(DifferenceDto::from).collect(),
            diagnostics: judged.findings.iter().map(FindingDto::from).collect(),
        }
    }
}

impl From<Judged> for JudgedDto {
    fn from(judged: Judged) -> Self {
        Self {
            estimated_bytes: judged.estimated.get(),
            recorded_bytes: judged.recorded.get(),
            error_bytes: judged.error(),
        }
    }
}

impl From<RequestCounts> for CountsDto {
    fn from(counts: RequestCounts) -> Self {
        Self {
            estimated: counts.estimated,
            recorded: counts.recorded,
            same: counts.same,
            moved: counts.moved,
            resized: counts.resized,
            extra: counts.extra,
            missing: counts.missing,
            outside: counts.outside,
        }
    }
}

impl From<&PhasePeaks> for PhaseDto {
    fn from(phase: &PhasePeaks) -> Self {
        Self {
            iteration: phase.iteration.map(|id| id.0),
            phase: phase.phase.name(),
            allocated: phase.allocated.into(),
        }
    }
}

impl From<&CurveDistance> for CurveDto {
    fn from(distance: &CurveDistance) -> Self {
        Self {
            iteration: distance.iteration.0,
            points: distance.points,
            allocated: distance.allocated,
            reserved: distance.reserved,
        }
    }
}

impl<'a> From<&'a Moment> for MomentDto<'a> {
    fn from(moment: &'a Moment) -> Self {
        Self {
            entry: moment.entry.0,
            allocated: moment.allocated.into(),
            place: (&moment.place).into(),
            site: (&moment.site).into(),
            estimated_peak: moment.estimated_peak.as_ref().map(PlaceDto::from),
        }
    }
}

impl From<&RoleBytes> for RoleDto {
    fn from(row: &RoleBytes) -> Self {
        Self { role: row.role.map(xmem::analyzer::Role::name), bytes: row.bytes.into() }
    }
}

impl<'a> From<&'a DifferenceGroup> for DifferenceDto<'a> {
    fn from(group: &'a DifferenceGroup) -> Self {
        Self {
            kind: group.kind.name(),
            count: group.count,
            count_at_peak: group.count_at_peak,
            at_peak_bytes: group.at_peak,
            bytes: group.bytes.get(),
            estimated_bytes: group.estimated.map(xmem::Bytes::get),
            recorded_bytes: group.recorded.map(xmem::Bytes::get),
            role: group.role.map(xmem::analyzer::Role::name),
            rule: group.rule,
            place: group.place.as_ref().map(PlaceDto::from),
            after: group.after.as_ref().map(PlaceDto::from),
            site: (&group.site).into(),
        }
    }
}
