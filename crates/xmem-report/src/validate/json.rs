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

/// A comparison of an estimate with a memory snapshot of the same job.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ValidateDocument<'a> {
    schema: &'static str,
    /// The trace, as given on the command line.
    trace: &'a str,
    /// The snapshot, as given on the command line.
    snapshot: &'a str,
    /// The device of the estimate.
    device: &'a str,
    /// The index of the recorded device.
    recorded_device: u32,
    /// true if the error of peak reserved is within the tolerance.
    within_tolerance: bool,
    /// Relative error of peak reserved that is tolerated.
    tolerance: f64,
    /// true if the simulator reproduces the recording; if not, block sizes of the recording may be wrong.
    recording_reproduced: bool,
    /// Peaks within what the recording covers.
    peaks: PeaksDto,
    /// The numbers of equal and different requests.
    blocks: CountsDto,
    /// Highest allocated memory by phase; the recording's are those of the estimate's requests.
    phases: Vec<PhaseDto>,
    /// The distance of the two timelines, by iteration, at the equal requests: the mean absolute difference relative to
    /// the mean recorded value.
    curves: Vec<CurveDto>,
    /// The peak of the recording; null if it allocates nothing.
    recorded_peak: Option<MomentDto<'a>>,
    /// Bytes allocated at that moment, by role.
    roles: Vec<RoleDto>,
    /// Groups of blocks that differ in the same way and come from the same place; those that affect the peak first. The
    /// sum of at_peak_bytes is the error at the peak.
    differences: Vec<DifferenceDto<'a>>,
    /// Odd content.
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PeaksDto {
    allocated: JudgedDto,
    requested: JudgedDto,
    reserved: JudgedDto,
}

/// An estimated and a recorded figure.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JudgedDto {
    /// The estimate.
    estimated_bytes: u64,
    /// The recorded figure.
    recorded_bytes: u64,
    /// By how much the estimate is too high; negative if too low.
    error_bytes: i64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CountsDto {
    /// Blocks of the estimate.
    estimated: u64,
    /// Blocks of the recording.
    recorded: u64,
    /// Same size, same place of the sequence.
    same: u64,
    /// Same size, a little earlier or later.
    moved: u64,
    /// Another size, between the same neighbors.
    resized: u64,
    /// Only estimated.
    extra: u64,
    /// Only recorded.
    missing: u64,
    /// Estimated before the recording begins or after it ends.
    outside: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PhaseDto {
    /// Iteration; null before the first.
    iteration: Option<u32>,
    /// Phase.
    #[cfg_attr(test, schemars(extend("enum" = ["init", "data", "forward", "backward", "zero_grad", "optimizer_step"])))]
    phase: &'static str,
    allocated: JudgedDto,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CurveDto {
    /// Iteration.
    iteration: u32,
    /// At how many requests the two were compared.
    points: u64,
    /// Distance of the curves of allocated memory.
    #[cfg_attr(test, schemars(range(min = 0)))]
    allocated: f64,
    /// Distance of the curves of reserved memory.
    #[cfg_attr(test, schemars(range(min = 0)))]
    reserved: f64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MomentDto<'a> {
    /// History entry.
    entry: u32,
    allocated: JudgedDto,
    place: PlaceDto<'a>,
    site: SiteDto<'a>,
    /// The place of the estimate's own peak, if different.
    estimated_peak: Option<PlaceDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RoleDto {
    /// Role; null for recorded blocks that are not in the estimate.
    role: Option<&'static str>,
    bytes: JudgedDto,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DifferenceDto<'a> {
    /// In what way.
    #[cfg_attr(test, schemars(extend("enum" = ["extra", "missing", "resized", "held", "not_held", "rounding"])))]
    kind: &'static str,
    /// Blocks.
    count: u64,
    /// Blocks of the group that affect the peak.
    count_at_peak: u64,
    /// Their contribution to the error at the peak; positive if the estimate is too high.
    at_peak_bytes: i64,
    /// By how much they differ in all.
    bytes: u64,
    /// Asked for each in the estimate; null if missing.
    estimated_bytes: Option<u64>,
    /// Asked for each in the recording; null if extra.
    recorded_bytes: Option<u64>,
    /// The role in the estimate.
    role: Option<&'static str>,
    /// The rule that made them.
    rule: Option<&'static str>,
    /// The place of the first block in the estimate.
    place: Option<PlaceDto<'a>>,
    /// Of blocks that are only recorded, the place that the estimate has just before the first.
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
