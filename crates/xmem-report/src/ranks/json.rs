//! `xmem.ranks/1`: the answer for a job of which several ranks were recorded.

use crate::bounds::BoundsDto;
use serde::Serialize;
use xmem::{Bytes, Decision, Device};
use xmem_studies::ranks::{JobRanks, RankAnswer, RankFigures};

/// The schema of [`RanksDocument`].
pub(crate) const RANKS: &str = "xmem.ranks/1";

/// The ranks of a job on one device as a document of schema `xmem.ranks/1`.
#[derive(Serialize)]
pub struct RanksDocument<'a> {
    schema: &'static str,
    settings: &'a str,
    device: DeviceDto<'a>,
    verdict: &'static str,
    decision: &'static str,
    world_size: u32,
    missing_ranks: Vec<RunDto>,
    worst: RankDto<'a>,
    spread: SpreadDto,
    groups: Vec<GroupDto>,
    ranks: Vec<RankDto<'a>>,
}

/// The device of each rank.
#[derive(Serialize)]
pub(crate) struct DeviceDto<'a> {
    name: &'a str,
    memory_bytes: u64,
}

/// Ranks in a row.
#[derive(Serialize)]
struct RunDto {
    first: u32,
    last: u32,
}

/// A recorded rank.
#[derive(Serialize)]
pub(crate) struct RankDto<'a> {
    rank: u32,
    trace: &'a str,
    verdict: &'static str,
    decision: &'static str,
    confidence: &'static str,
    allocated_bytes: u64,
    reserved_bytes: u64,
    device_bytes: u64,
    device_range: BoundsDto,
    headroom_bytes: Option<u64>,
    shortfall_bytes: Option<u64>,
}

/// The least and the most over the recorded ranks.
#[derive(Serialize)]
struct SpreadDto {
    allocated_bytes: BoundsDto,
    reserved_bytes: BoundsDto,
    device_bytes: BoundsDto,
}

/// Ranks with equal figures.
#[derive(Serialize)]
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
