//! `xmem.plan/1`.

use crate::findings::FindingDto;
use crate::setup::SetupDto;
use serde::Serialize;
use xmem::predict::{Finding, RoleShare};
use xmem_studies::planner::{Planned, Proof};
use xmem_studies::planning::{
    AllocatorRun, FragmentationSeries, PlanAnswer, PlanBlocks, PlanSource, PlannerOutcome,
};

/// Plans of a list of blocks as a document of schema `xmem.plan/1`.
#[derive(Serialize)]
pub struct PlanDocument<'a> {
    schema: &'static str,
    input: &'a str,
    source: SourceDto,
    allocator: Option<SetupDto<'a>>,
    blocks: usize,
    lower_bound_bytes: u64,
    total_bytes: u64,
    best: Option<BestDto>,
    plans: Vec<PlanDto<'a>>,
    allocators: Vec<AllocatorDto>,
    job: Option<JobDto>,
    interrupted: Option<InterruptedDto>,
    outside: Option<OutsideDto>,
    breakdown: Option<BreakdownDto>,
    fragmentation: Vec<FragmentationDto>,
    block_list: Option<Vec<BlockDto<'a>>>,
    diagnostics: Vec<FindingDto<'a>>,
}

/// The detail of the plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanDetail {
    /// Their figures.
    Figures,
    /// Also the blocks, and the offset of each in each plan.
    Offsets,
}

#[derive(Serialize)]
struct SourceDto {
    kind: &'static str,
    iteration: Option<u32>,
    iterations: Option<usize>,
}

#[derive(Serialize)]
struct BestDto {
    planner: &'static str,
    peak_bytes: u64,
    optimal: bool,
}

#[derive(Serialize)]
struct PlanDto<'a> {
    planner: &'static str,
    peak_bytes: Option<u64>,
    lower_bound_bytes: u64,
    ratio: Option<f64>,
    optimal: bool,
    proof: Option<&'static str>,
    seconds: Option<f64>,
    nodes: Option<u64>,
    refused: Option<String>,
    #[serde(serialize_with = "offsets")]
    offsets: Option<&'a Planned>,
}

fn offsets<S: serde::Serializer>(planned: &Option<&Planned>, to: S) -> Result<S::Ok, S::Error> {
    match planned {
        None => to.serialize_none(),
        Some(planned) => to.collect_seq(planned.plan.offsets().iter().map(|offset| offset.get())),
    }
}

#[derive(Serialize)]
struct AllocatorDto {
    name: &'static str,
    allocated_bytes: u64,
    reserved_bytes: u64,
    segments: usize,
    refused: usize,
}

#[derive(Serialize)]
struct JobDto {
    allocated_bytes: u64,
    reserved_bytes: u64,
}

#[derive(Serialize)]
struct InterruptedDto {
    by: Vec<String>,
    blocks: usize,
    live_bytes: u64,
    reserved_bytes: u64,
    together_bytes: Option<u64>,
    all_blocks: usize,
    all_live_bytes: u64,
    all_reserved_bytes: u64,
}

#[derive(Serialize)]
struct OutsideDto {
    peak_bytes: u64,
    together_bytes: u64,
    by_role: Vec<RoleDto>,
}

#[derive(Serialize)]
struct RoleDto {
    role: &'static str,
    bytes: u64,
    blocks: u64,
}

#[derive(Serialize)]
struct BreakdownDto {
    categories: Vec<CategoryDto>,
    total_bytes: u64,
    shape_inference_bytes: u64,
}

#[derive(Serialize)]
struct CategoryDto {
    category: &'static str,
    bytes: u64,
    in_dnnmem: bool,
}

#[derive(Serialize)]
struct FragmentationDto {
    placement: &'static str,
    external: f64,
    largest_waste_bytes: u64,
    at_peak: Option<AtPeakDto>,
    span_starts: Vec<u32>,
    classes: Vec<ClassDto>,
}

#[derive(Serialize)]
struct AtPeakDto {
    tick: u32,
    block: usize,
    requested_bytes: u64,
    free_bytes: u64,
    free_pieces: usize,
    largest_free_bytes: u64,
    unusable: f64,
    unusable_in_class: f64,
}

#[derive(Serialize)]
struct ClassDto {
    request_bytes: u64,
    average_unusable: f64,
    average_unusable_exact: f64,
    unusable_over_time: Vec<f64>,
    unusable_exact_over_time: Vec<f64>,
}

/// The spans of time for which the document has the index.
const SPANS: usize = 16;

#[derive(Serialize)]
struct BlockDto<'a> {
    id: usize,
    name: &'a str,
    start: u32,
    end: u32,
    size_bytes: u64,
    requested_bytes: u64,
    category: Option<&'static str>,
    op: &'a str,
}

impl<'a> PlanDocument<'a> {
    /// The document of an answer; `notes` are the oddities of the input.
    #[must_use]
    pub fn new(
        input: &'a str,
        answer: &'a PlanAnswer,
        notes: &'a [Finding],
        detail: PlanDetail,
    ) -> Self {
        let blocks = &answer.blocks;
        let plan = |outcome| PlanDto::new(outcome, answer.lower_bound().get(), detail);
        let outside = blocks.outside.as_ref().map(|outside| OutsideDto {
            peak_bytes: outside.bytes.get(),
            together_bytes: outside.together.get(),
            by_role: outside.by_role.iter().map(RoleDto::from).collect(),
        });
        Self {
            schema: "xmem.plan/1",
            input,
            source: SourceDto::from(blocks.source),
            allocator: blocks.setup.as_ref().map(SetupDto::from),
            blocks: blocks.list.len(),
            lower_bound_bytes: answer.lower_bound().get(),
            total_bytes: blocks.list.total().get(),
            best: answer.best().map(|best| BestDto {
                planner: best.planner.name(),
                peak_bytes: best.plan.peak().get(),
                optimal: best.is_optimal(),
            }),
            plans: answer.planners.iter().map(plan).collect(),
            allocators: [&answer.pytorch, &answer.tensorflow].map(AllocatorDto::from).into(),
            job: blocks.job.map(|job| JobDto {
                allocated_bytes: job.allocated.get(),
                reserved_bytes: job.reserved.get(),
            }),
            interrupted: answer.interrupted.as_ref().map(|run| InterruptedDto {
                by: run.by.iter().map(ToString::to_string).collect(),
                blocks: run.blocks,
                live_bytes: run.live.get(),
                reserved_bytes: run.reserved.get(),
                together_bytes: answer.with_interrupted().map(xmem::Bytes::get),
                all_blocks: run.all_blocks,
                all_live_bytes: run.all_live.get(),
                all_reserved_bytes: run.all_reserved.get(),
            }),
            outside,
            breakdown: blocks.breakdown.as_ref().map(|breakdown| BreakdownDto {
                categories: breakdown.shares.iter().map(CategoryDto::from).collect(),
                total_bytes: breakdown.total().get(),
                shape_inference_bytes: breakdown.shape_inference.get(),
            }),
            fragmentation: fragmentation(answer),
            block_list: (detail == PlanDetail::Offsets).then(|| block_list(blocks)),
            diagnostics: notes.iter().map(FindingDto::from).collect(),
        }
    }
}

impl From<PlanSource> for SourceDto {
    fn from(source: PlanSource) -> Self {
        let (kind, at) = match source {
            PlanSource::Iteration { iteration, of } => ("iteration", Some((iteration.0, of))),
            PlanSource::Recording => ("recording", None),
            PlanSource::Operations => ("operations", None),
            PlanSource::Table => ("table", None),
        };
        Self { kind, iteration: at.map(|at| at.0), iterations: at.map(|at| at.1) }
    }
}

impl<'a> PlanDto<'a> {
    fn new(outcome: &'a PlannerOutcome, bound: u64, detail: PlanDetail) -> Self {
        let planned = outcome.result.as_ref().ok();
        let proof = planned.and_then(|planned| planned.proof);
        Self {
            planner: outcome.planner.name(),
            peak_bytes: planned.map(|planned| planned.plan.peak().get()),
            lower_bound_bytes: bound,
            ratio: planned.map(Planned::ratio),
            optimal: planned.is_some_and(Planned::is_optimal),
            proof: proof.map(|proof| match proof {
                Proof::LowerBound => "lower_bound",
                Proof::Search => "search",
            }),
            seconds: planned.map(|planned| planned.time.as_secs_f64()),
            nodes: planned.map(|planned| planned.nodes),
            refused: outcome.result.as_ref().err().map(ToString::to_string),
            offsets: planned.filter(|_| detail == PlanDetail::Offsets),
        }
    }
}

impl From<&AllocatorRun> for AllocatorDto {
    fn from(run: &AllocatorRun) -> Self {
        Self {
            name: run.kind.name(),
            allocated_bytes: run.allocated.get(),
            reserved_bytes: run.reserved.get(),
            segments: run.segments.len(),
            refused: run.refused,
        }
    }
}

impl From<&RoleShare> for RoleDto {
    fn from(share: &RoleShare) -> Self {
        Self { role: share.role.name(), bytes: share.bytes.get(), blocks: share.blocks }
    }
}

impl From<&xmem_studies::planning::BreakdownShare> for CategoryDto {
    fn from(share: &xmem_studies::planning::BreakdownShare) -> Self {
        let category = share.category;
        Self {
            category: category.name(),
            bytes: share.bytes.get(),
            in_dnnmem: category.is_of_dnnmem(),
        }
    }
}

fn fragmentation(answer: &PlanAnswer) -> Vec<FragmentationDto> {
    let bound = answer.lower_bound().get();
    let dto = |placement, peak: xmem::Bytes, series: &FragmentationSeries| FragmentationDto {
        placement,
        external: if bound == 0 { 0.0 } else { peak.get() as f64 / bound as f64 - 1.0 },
        largest_waste_bytes: series.largest_waste().get(),
        at_peak: series.at_peak.as_ref().map(|peak| AtPeakDto {
            tick: peak.tick,
            block: peak.block,
            requested_bytes: peak.size.get(),
            free_bytes: peak.free.total().get(),
            free_pieces: peak.free.count(),
            largest_free_bytes: peak.free.largest().get(),
            unusable: peak.free.unusable(peak.size),
            unusable_in_class: peak.free.unusable_in_class(peak.size.get().max(1).ilog2()),
        }),
        span_starts: series.spans(SPANS).map(|span| span[0].tick).collect(),
        classes: FragmentationSeries::classes(&answer.blocks)
            .map(|class| class_dto(series, class))
            .collect(),
    };
    let planned = answer.best().zip(answer.fragmentation.as_ref());
    let planned = planned.map(|(best, series)| dto("plan", best.plan.peak(), series));
    let runs = [&answer.pytorch, &answer.tensorflow];
    let runs = runs.map(|run| dto(run.kind.name(), run.reserved, &run.fragmentation));
    planned.into_iter().chain(runs).collect()
}

fn class_dto(series: &FragmentationSeries, class: u32) -> ClassDto {
    let request = xmem::Bytes(1 << class);
    let rounded = |values: Vec<f64>| -> Vec<f64> {
        values.into_iter().map(|value| (value * 1e4).round() / 1e4).collect()
    };
    ClassDto {
        request_bytes: request.get(),
        average_unusable: series.average_in_class(class),
        average_unusable_exact: series.average_for(request),
        unusable_over_time: rounded(series.over_time(SPANS, |free| free.unusable_in_class(class))),
        unusable_exact_over_time: rounded(series.over_time(SPANS, |free| free.unusable(request))),
    }
}

fn block_list(blocks: &PlanBlocks) -> Vec<BlockDto<'_>> {
    let listed = blocks.list.blocks().iter().zip(&blocks.facts).enumerate();
    listed
        .map(|(id, (block, facts))| BlockDto {
            id,
            name: &facts.name,
            start: block.start,
            end: block.end,
            size_bytes: block.size.get(),
            requested_bytes: facts.requested.get(),
            category: facts.role.map(xmem::analyzer::Role::name),
            op: &facts.op,
        })
        .collect()
}
