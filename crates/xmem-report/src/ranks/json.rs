//! `xmem.ranks/1`: the answer for a job of which several ranks were recorded.

use crate::bounds::BoundsDto;
use serde::Serialize;
use xmem::{Bytes, Decision, Device};
use xmem_studies::ranks::{JobRanks, RankAnswer, RankFigures};

/// The schema of [`RanksDocument`].
pub(crate) const RANKS: &str = "xmem.ranks/1";

/// The answer for a job of which several ranks were recorded: an entry after those of the traces.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RanksDocument<'a> {
    schema: &'static str,
    /// As in xmem.replay/2.
    settings: &'a str,
    /// The device of each rank.
    device: DeviceDto<'a>,
    /// The verdict of the worst rank that was recorded.
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem::Verdict>"))]
    verdict: &'static str,
    /// The decision about the job: fits; tight: it may run and it may not (`tight_by`); does_not_fit: it runs out of
    /// memory, over the whole range; no_verdict: the verdict is withheld, or the trace is damaged. The same as that of
    /// xmem check without a margin.
    #[cfg_attr(test, schemars(extend("enum" = ["fits", "tight", "does_not_fit", "no_verdict"])))]
    decision: &'static str,
    /// The number of ranks of the job.
    world_size: u32,
    /// The ranks of the job that were not recorded, by runs: what they need is not known.
    missing_ranks: Vec<RunDto>,
    /// The rank that decides: the one with the worst verdict, of these the one that needs most.
    worst: RankDto<'a>,
    /// The least and the most over the recorded ranks.
    spread: SpreadDto,
    /// Ranks with equal figures, in order of their first rank.
    groups: Vec<GroupDto>,
    /// The recorded ranks in order.
    ranks: Vec<RankDto<'a>>,
}

/// The device of each rank.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DeviceDto<'a> {
    name: &'a str,
    memory_bytes: u64,
}

/// Ranks in a row.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunDto {
    first: u32,
    last: u32,
}

/// A recorded rank.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RankDto<'a> {
    /// Its number, from 0.
    rank: u32,
    /// The recording, as given on the command line.
    trace: &'a str,
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem::Verdict>"))]
    verdict: &'static str,
    /// The decision about the job: fits; tight: it may run and it may not (`tight_by`); does_not_fit: it runs out of
    /// memory, over the whole range; no_verdict: the verdict is withheld, or the trace is damaged. The same as that of
    /// xmem check without a margin.
    #[cfg_attr(test, schemars(extend("enum" = ["fits", "tight", "does_not_fit", "no_verdict"])))]
    decision: &'static str,
    /// As `range.confidence` of xmem.replay/2.
    #[cfg_attr(test, schemars(extend("enum" = ["certain", "likely", "may_fail", "may_fit", "doubtful"])))]
    confidence: &'static str,
    /// Peak of allocated memory.
    allocated_bytes: u64,
    /// Peak of reserved memory.
    reserved_bytes: u64,
    /// The figure of nvidia-smi.
    device_bytes: u64,
    /// The range of the figure of nvidia-smi.
    device_range: BoundsDto,
    headroom_bytes: Option<u64>,
    shortfall_bytes: Option<u64>,
}

/// The least and the most over the recorded ranks.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SpreadDto {
    allocated_bytes: BoundsDto,
    reserved_bytes: BoundsDto,
    device_bytes: BoundsDto,
}

/// Ranks with equal figures.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GroupDto {
    ranks: Vec<u32>,
    reserved_bytes: u64,
}

impl<'a> RanksDocument<'a> {
    /// The document of a job on `device`, answered with `settings` (options of the command line).
    #[must_use]
    pub fn new(settings: &'a str, device: &'a Device, job: &'a JobRanks) -> Self {
        let spread = |figure| BoundsDto::from(job.spread(figure));
        let group = |group: Vec<&RankAnswer>| GroupDto {
            reserved_bytes: group[0].figures.reserved.get(),
            ranks: group.into_iter().map(RankAnswer::number).collect(),
        };
        Self {
            schema: RANKS,
            settings,
            device: DeviceDto::from(device),
            verdict: job.verdict().name(),
            decision: decision(&job.worst().figures),
            world_size: job.world_size,
            missing_ranks: job
                .missing
                .iter()
                .map(|&(first, last)| RunDto { first, last })
                .collect(),
            worst: RankDto::from(job.worst()),
            spread: SpreadDto {
                allocated_bytes: spread(|figures: &RankFigures| figures.allocated),
                reserved_bytes: spread(|figures| figures.reserved),
                device_bytes: spread(|figures| figures.device),
            },
            groups: job.groups().into_iter().map(group).collect(),
            ranks: job.ranks.iter().map(RankDto::from).collect(),
        }
    }
}

fn decision(figures: &RankFigures) -> &'static str {
    Decision::of(figures.verdict, figures.confidence).0.name()
}

impl<'a> From<&'a Device> for DeviceDto<'a> {
    fn from(device: &'a Device) -> Self {
        Self { name: &device.name, memory_bytes: device.memory.get() }
    }
}

impl<'a> From<&'a RankAnswer> for RankDto<'a> {
    fn from(answer: &'a RankAnswer) -> Self {
        let figures = &answer.figures;
        Self {
            rank: answer.number(),
            trace: &answer.trace,
            verdict: figures.verdict.name(),
            decision: decision(figures),
            confidence: figures.confidence.name(),
            allocated_bytes: figures.allocated.get(),
            reserved_bytes: figures.reserved.get(),
            device_bytes: figures.device.get(),
            device_range: figures.device_bounds.into(),
            headroom_bytes: figures.headroom.map(Bytes::get),
            shortfall_bytes: figures.shortfall.map(Bytes::get),
        }
    }
}
