//! `xmem.plan/1`.

use crate::findings::FindingDto;
use crate::setup::SetupDto;
use serde::Serialize;
use xmem::predict::{Finding, RoleShare};
use xmem_studies::planner::{Planned, Proof};
use xmem_studies::planning::{
    AllocatorRun, FragmentationSeries, PlanAnswer, PlanBlocks, PlanSource, PlannerOutcome,
};

/// Static memory plans of a list of blocks, beside allocators on the same blocks.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanDocument<'a> {
    schema: &'static str,
    /// The input, as given on the command line.
    input: &'a str,
    /// The origin of the blocks.
    source: SourceDto,
    /// The allocator of the job; null for a table.
    allocator: Option<SetupDto<'a>>,
    /// The number of blocks that are planned.
    blocks: usize,
    /// The most bytes that are live at once: no plan has a lower peak.
    lower_bound_bytes: u64,
    /// The bytes of all blocks: a plan in which nothing is used twice.
    total_bytes: u64,
    /// The plan with the lowest peak; null if no planner gave one.
    best: Option<BestDto>,
    /// A result for each planner, in the order in which they were run.
    plans: Vec<PlanDto<'a>>,
    /// Allocators on the same blocks alone, from the beginning, on a device with enough memory: that of the job
    /// (PyTorch's where there is none), and TensorFlow's with allow_growth.
    allocators: Vec<AllocatorDto>,
    /// The allocator of the job with `expandable_segments:True`, which costs nothing; null where that is no option, or is on
    /// already.
    expandable_segments: Option<AllocatorDto>,
    /// The peaks of all requests of the input with its own allocator, on a device with enough memory.
    job: Option<JobDto>,
    /// The blocks that are left out of the plans and that the allocator serves; null without --interrupt. All other
    /// members are about the planned blocks alone.
    interrupted: Option<InterruptedDto>,
    /// The memory that is live during the iteration and not planned, as it outlives it; null unless one iteration is
    /// planned.
    outside: Option<OutsideDto>,
    /// The memory of the whole job at the peak of its live blocks, in DNNMem's categories; null unless the input is a
    /// recording.
    breakdown: Option<BreakdownDto>,
    /// The fragmentation of the best plan and of the allocators.
    fragmentation: Vec<FragmentationDto>,
    /// With --offsets: the blocks, by id.
    block_list: Option<Vec<BlockDto<'a>>>,
    /// Odd or missing content.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SourceDto {
    /// One iteration of a recording, all of a recording, a list of operations, or a table.
    #[cfg_attr(test, schemars(extend("enum" = ["iteration", "recording", "operations", "table"])))]
    kind: &'static str,
    /// The iteration that is planned, counted from 0.
    iteration: Option<u32>,
    /// The iterations of the recording.
    iterations: Option<usize>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BestDto {
    /// Its planner.
    planner: &'static str,
    /// Its peak.
    peak_bytes: u64,
    /// True if it is proven that no plan has a lower peak.
    optimal: bool,
}

/// A planner's result.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PlanDto<'a> {
    /// The planner.
    planner: &'static str,
    /// The end of the highest block; null if there is no plan.
    peak_bytes: Option<u64>,
    /// The same as at the top.
    lower_bound_bytes: u64,
    /// The peak in units of the lower bound.
    #[cfg_attr(test, schemars(range(min = 0)))]
    ratio: Option<f64>,
    /// True if it is proven that no plan has a lower peak.
    optimal: bool,
    /// The reason: the peak is the lower bound, or a complete search found no lower one.
    #[cfg_attr(test, schemars(extend("enum" = ["lower_bound", "search", null])))]
    proof: Option<&'static str>,
    /// The time that it took: differs from run to run.
    #[cfg_attr(test, schemars(range(min = 0)))]
    seconds: Option<f64>,
    /// Steps of a search, or passes of a heuristic.
    nodes: Option<u64>,
    /// The reason why there is no plan; null if there is one.
    refused: Option<String>,
    /// With --offsets: the offset of each block, in the order of `block_list`.
    #[serde(serialize_with = "offsets")]
    #[cfg_attr(test, schemars(with = "Option<Vec<u64>>"))]
    offsets: Option<&'a Planned>,
}

fn offsets<S: serde::Serializer>(planned: &Option<&Planned>, to: S) -> Result<S::Ok, S::Error> {
    match planned {
        None => to.serialize_none(),
        Some(planned) => to.collect_seq(planned.plan.offsets().iter().map(|offset| offset.get())),
    }
}

/// An allocator.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AllocatorDto {
    /// Its name.
    name: &'static str,
    /// The most bytes of blocks handed out.
    allocated_bytes: u64,
    /// The most bytes of segments.
    reserved_bytes: u64,
    /// The segments that it obtained.
    segments: usize,
    /// Blocks that it does not serve, as they are larger than the memory of any device.
    refused: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JobDto {
    /// Peak allocated.
    allocated_bytes: u64,
    /// Peak reserved.
    reserved_bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct InterruptedDto {
    /// The parts of the input that are left out: START..END (ticks), phases, names of operators.
    by: Vec<String>,
    /// The number of blocks that are left out.
    blocks: usize,
    /// The most bytes of them that are live at once.
    live_bytes: u64,
    /// What the allocator of the job reserves for them alone.
    reserved_bytes: u64,
    /// The peak of the best plan and reserved_bytes; null if no planner gave a plan.
    together_bytes: Option<u64>,
    /// The number of all blocks.
    all_blocks: usize,
    /// The most bytes of all blocks that are live at once.
    all_live_bytes: u64,
    /// What the allocator of the job reserves for all blocks.
    all_reserved_bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OutsideDto {
    /// The most bytes that are live at once.
    peak_bytes: u64,
    /// The most bytes that are live at once together with the blocks that are planned.
    together_bytes: u64,
    /// By role, at the moment of peak_bytes.
    by_role: Vec<RoleDto>,
}

/// A role.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RoleDto {
    /// The role.
    role: &'static str,
    /// Its bytes.
    bytes: u64,
    /// Its blocks.
    blocks: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BreakdownDto {
    /// The categories that have bytes.
    categories: Vec<CategoryDto>,
    /// Their sum.
    total_bytes: u64,
    /// DNNMem's baseline: input, weights and the forward outputs that backward needs of the iteration.
    shape_inference_bytes: u64,
    /// The same with all outputs of forward operators.
    shape_inference_all_outputs_bytes: u64,
    /// DNNMem's estimate, with the allocator of the job and the context.
    dnnmem_bytes: Option<u64>,
    /// The same with TensorFlow's BFC (growth).
    dnnmem_bfc_bytes: Option<u64>,
}

/// A category.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CategoryDto {
    /// Its name.
    #[cfg_attr(
        test,
        schemars(with = "crate::schemas::NameOf<xmem_studies::planning::DnnMemCategory>")
    )]
    category: &'static str,
    /// Its bytes.
    bytes: u64,
    /// True if DNNMem has the category.
    in_dnnmem: bool,
}

/// A placement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FragmentationDto {
    /// `plan`, or the allocator.
    placement: &'static str,
    /// Peak, or reserved bytes, over the lower bound, less 1.
    #[cfg_attr(test, schemars(range(min = 0)))]
    external: f64,
    /// The most bytes below the top that are not live, among the moments of the series.
    largest_waste_bytes: u64,
    /// The request that raised the peak.
    at_peak: Option<AtPeakDto>,
    /// The first tick of each span of time for which classes have the index: spans of equally many moments, 16 if there
    /// are as many.
    span_starts: Vec<u32>,
    /// The index by class of requests.
    classes: Vec<ClassDto>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AtPeakDto {
    /// Its tick.
    tick: u32,
    /// The id of its block.
    block: usize,
    /// Its size.
    requested_bytes: u64,
    /// Free bytes that it did not use: of an allocator, in the segments of its pool before; of a plan, below its peak.
    free_bytes: u64,
    /// Their pieces.
    free_pieces: usize,
    /// The largest piece.
    largest_free_bytes: u64,
    /// The part of the free bytes in pieces smaller than the request.
    #[cfg_attr(test, schemars(range(min = 0)))]
    unusable: f64,
    /// The unusable free space index of the class of the request: pieces count as powers of two.
    #[cfg_attr(test, schemars(range(min = 0)))]
    unusable_in_class: f64,
}

/// A class.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ClassDto {
    /// The size of the requests.
    request_bytes: u64,
    /// The average of the index over the moments of the series.
    #[cfg_attr(test, schemars(range(min = 0)))]
    average_unusable: f64,
    /// The same in the exact form: the part of the free bytes in pieces smaller than the request.
    #[cfg_attr(test, schemars(range(min = 0)))]
    average_unusable_exact: f64,
    /// The average of the index over each span.
    #[cfg_attr(test, schemars(inner(range(min = 0))))]
    unusable_over_time: Vec<f64>,
    /// The same in the exact form.
    #[cfg_attr(test, schemars(inner(range(min = 0))))]
    unusable_exact_over_time: Vec<f64>,
}

/// The spans of time for which the document has the index.
const SPANS: usize = 16;

/// A block.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BlockDto<'a> {
    /// Its place in the list.
    id: usize,
    /// Its name or number in the input.
    name: &'a str,
    /// The first tick at which it is live.
    start: u32,
    /// The first tick at which it is no longer live.
    end: u32,
    /// Its size, rounded as the plans have it.
    size_bytes: u64,
    /// The size that was requested.
    requested_bytes: u64,
    /// Its role; null if the input has no roles.
    category: Option<&'static str>,
    /// The innermost operator that made it; empty where it is not known.
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
            expandable_segments: answer.expandable.as_ref().map(AllocatorDto::from),
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
                shape_inference_bytes: breakdown.shape_inference.saved_outputs.get(),
                shape_inference_all_outputs_bytes: breakdown.shape_inference.all_outputs.get(),
                dnnmem_bytes: answer.dnnmem.map(|estimate| estimate.with_job_allocator.get()),
                dnnmem_bfc_bytes: answer.dnnmem.map(|estimate| estimate.with_bfc.get()),
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
