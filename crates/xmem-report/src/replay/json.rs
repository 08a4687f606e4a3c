//! `xmem.replay/2`.

use crate::bounds::BoundsDto;
use crate::findings::FindingDto;
use crate::places::PlaceDto;
use crate::recorded::RecordedDto;
use crate::setup::SetupDto;
use serde::Serialize;
use xmem::analyzer::integrity::Integrity;
use xmem::orchestrator::{CompletionModel, OptimizerImpl, StreamCompletion, ZeroGradPlace};
use xmem::profiles::Bandwidth;
use xmem::{Answer, Decision, GpuNeed, TightBy};

/// The schema of [`ReplayDocument`].
pub(crate) const REPLAY: &str = "xmem.replay/2";

/// An answer as a document of schema `xmem.replay/2`.
#[derive(Serialize)]
pub struct ReplayDocument<'a> {
    schema: &'static str,
    trace: &'a str,
    verdict: &'static str,
    decision: &'static str,
    tight_by: Option<&'static str>,
    summary: String,
    withheld: Vec<&'static str>,
    warnings: usize,
    integrity: IntegrityDto,
    settings: &'a str,
    device: DeviceDto<'a>,
    /// Of distributed jobs that use NCCL only.
    #[serde(skip_serializing_if = "Option::is_none")]
    nccl: Option<NcclDto>,
    /// Of jobs that took memory of a virtual GPU outside PyTorch's allocator only.
    #[serde(skip_serializing_if = "Option::is_none")]
    outside_bytes: Option<u64>,
    target: TargetDto<'a>,
    iterations: IterationRangeDto,
    /// Of jobs that were recorded on a GPU only.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<RecordedDto<'a>>,
    peak: PeakDto<'a>,
    range: PeakRangeDto,
    headroom_bytes: Option<u64>,
    shortfall_bytes: Option<u64>,
    need_bytes: Option<u64>,
    ample_bytes: Option<u64>,
    unlimited: UnlimitedDto,
    min_capacity_bytes: Option<u64>,
    other_gpus: Vec<GpuNeedDto>,
    out_of_memory: Option<OutOfMemoryDto<'a>>,
    unmodeled: UnmodeledDto<'a>,
    by_role: RolesDto,
    per_iteration: Vec<IterationDto>,
    largest_blocks: Vec<BlockDto<'a>>,
    fragmentation: FragmentationDto,
    allocator: AllocatorDto,
    curve: CurveDto,
    rules: Option<Vec<RuleDto<'a>>>,
    diagnostics: Vec<FindingDto<'a>>,
}

/// Whether the events of the recording agree with each other.
#[derive(Serialize)]
struct IntegrityDto {
    condition: &'static str,
    checks: Vec<CheckDto>,
}

#[derive(Serialize)]
struct CheckDto {
    check: &'static str,
    affected: u64,
    checked: u64,
}

impl IntegrityDto {
    fn new(integrity: &Integrity) -> Self {
        let checks = integrity.findings().iter().map(|finding| CheckDto {
            check: finding.check.name,
            affected: finding.affected,
            checked: finding.checked,
        });
        Self { condition: integrity.condition().name(), checks: checks.collect() }
    }
}

#[derive(Serialize)]
struct DeviceDto<'a> {
    name: &'a str,
    title: &'a str,
    memory_bytes: u64,
    context_bytes: u64,
    available_bytes: u64,
    compute_capability: String,
    sms: u32,
}

/// Memory of NCCL outside the allocator.
#[derive(Serialize)]
struct NcclDto {
    communicators: u32,
    communicators_counted: bool,
    expected_bytes: u64,
    range_bytes: BoundsDto,
}

#[derive(Serialize)]
struct TargetDto<'a> {
    torch: String,
    optimizer_impl: &'static str,
    zero_grad: Option<&'static str>,
    set_to_none: bool,
    world_size: Option<u32>,
    collectives: CollectivesDto,
    disabled_rules: Vec<&'a str>,
    convolutions: &'a str,
    allocator: SetupDto<'a>,
}

/// When work on streams is complete.
#[derive(Serialize)]
struct CollectivesDto {
    complete: &'static str,
    model: Option<ModelDto>,
}

#[derive(Serialize)]
struct ModelDto {
    nvlink_bytes_per_second: Option<u64>,
    pcie_bytes_per_second: u64,
    network_bytes_per_second: u64,
    memory_bytes_per_second: u64,
    float32_per_second: u64,
    bfloat16_per_second: u64,
    compute_efficiency: f64,
    memory_efficiency: f64,
    host_share: f64,
}

impl CollectivesDto {
    fn new(completion: &StreamCompletion) -> Self {
        let model = match completion {
            StreamCompletion::Modeled(model) => Some(&**model),
            StreamCompletion::AtOnce | StreamCompletion::HostWaits => None,
        };
        let model = model.map(|CompletionModel { device, host }| ModelDto {
            nvlink_bytes_per_second: device.nvlink.map(Bandwidth::get),
            pcie_bytes_per_second: device.pcie.get(),
            network_bytes_per_second: device.network.get(),
            memory_bytes_per_second: device.memory.get(),
            float32_per_second: device.peaks.f32.0,
            bfloat16_per_second: device.peaks.bf16.0,
            compute_efficiency: device.compute_efficiency,
            memory_efficiency: device.memory_efficiency,
            host_share: *host,
        });
        Self { complete: completion.name(), model }
    }
}

#[derive(Serialize)]
struct IterationRangeDto {
    from: u32,
    to: u32,
    of: usize,
}

#[derive(Serialize)]
struct PeakDto<'a> {
    allocated_bytes: u64,
    requested_bytes: u64,
    reserved_bytes: u64,
    device_bytes: u64,
    at: Option<PlaceDto<'a>>,
    reserved_at: Option<PlaceDto<'a>>,
}

#[derive(Serialize)]
struct UnlimitedDto {
    reserved_bytes: u64,
    device_bytes: u64,
    fits: bool,
}

/// Another GPU of the process.
#[derive(Serialize)]
struct GpuNeedDto {
    index: i16,
    decision: &'static str,
    allocated_bytes: u64,
    reserved_bytes: u64,
    need_bytes: u64,
    ample_bytes: u64,
}

impl From<&GpuNeed> for GpuNeedDto {
    fn from(gpu: &GpuNeed) -> Self {
        Self {
            index: gpu.index,
            decision: gpu.decision.name(),
            allocated_bytes: gpu.allocated.get(),
            reserved_bytes: gpu.reserved.get(),
            need_bytes: gpu.need.least.get(),
            ample_bytes: gpu.need.ample.get(),
        }
    }
}

#[derive(Serialize)]
struct OutOfMemoryDto<'a> {
    at: Option<PlaceDto<'a>>,
    request_index: u64,
    requested_bytes: u64,
    tried_bytes: u64,
    free_bytes: u64,
    allocated_bytes: u64,
    reserved_bytes: u64,
    needed_bytes: u64,
}

/// The range of the peaks.
#[derive(Serialize)]
struct PeakRangeDto {
    allocated_bytes: BoundsDto,
    reserved_bytes: BoundsDto,
    device_bytes: BoundsDto,
    confidence: &'static str,
    uncertainties: Vec<UncertaintyDto>,
}

#[derive(Serialize)]
struct UncertaintyDto {
    name: &'static str,
    blocks: Option<u64>,
    allocated_bytes: BoundsDto,
    reserved_bytes: BoundsDto,
}

/// Memory of operators without a model, with the sizes of the CPU.
#[derive(Serialize)]
struct UnmodeledDto<'a> {
    bytes: u64,
    operators: Vec<OperatorDto<'a>>,
}

#[derive(Serialize)]
struct OperatorDto<'a> {
    op: &'a str,
    bytes: u64,
    blocks: u64,
}

/// Bytes by role; the keys are the role names, in the order of reports.
#[derive(Serialize)]
#[serde(transparent)]
struct RolesDto(serde_json::Map<String, serde_json::Value>);

#[derive(Serialize)]
struct IterationDto {
    iteration: Option<u32>,
    allocated_bytes: u64,
    reserved_bytes: u64,
}

#[derive(Serialize)]
struct BlockDto<'a> {
    bytes: u64,
    requested_bytes: u64,
    role: &'static str,
    evidence: Option<&'a str>,
    rule: Option<&'a str>,
    origin: PlaceDto<'a>,
}

#[derive(Serialize)]
struct FragmentationDto {
    at: &'static str,
    reserved_bytes: u64,
    unused_bytes: u64,
    releasable_bytes: u64,
    pieces: u64,
    largest_piece_bytes: u64,
    rounding_bytes: u64,
}

#[derive(Serialize)]
struct AllocatorDto {
    requests: u64,
    allocations: u64,
    segments_peak: u64,
    device_allocs: u64,
    device_frees: u64,
    retries: u64,
}

#[derive(Serialize)]
struct CurveDto {
    requests: u64,
    iteration_starts: Vec<StartDto>,
    allocated_bytes: Vec<u64>,
    reserved_bytes: Vec<u64>,
}

#[derive(Serialize)]
struct StartDto {
    iteration: u32,
    point: usize,
}

#[derive(Serialize)]
struct RuleDto<'a> {
    rule: &'a str,
    summary: &'a str,
    source: &'a str,
    dropped: CountDto,
    added: CountDto,
    resized: ResizedDto,
    retimed: CountDto,
}

#[derive(Serialize)]
struct CountDto {
    blocks: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct ResizedDto {
    blocks: u64,
    bytes_before: u64,
    bytes_after: u64,
}

/// The level of detail about rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Rules are left out.
    #[default]
    Omit,
    /// The effect of each rule is listed (`--explain`).
    Explain,
}

impl<'a> ReplayDocument<'a> {
    /// The document of an answer about `trace`, the input as the user named it, with `settings`
    /// (options of the command line).
    #[must_use]
    pub fn new(trace: &'a str, settings: &'a str, answer: &'a Answer, rules: Rules) -> Self {
        let device = answer.device();
        let peak = &answer.memory.peak;
        let (decision, tight_by) = answer.decision();
        let reason = answer.withheld.first().map(|reason| reason.code());
        let unlimited = peak.ample_reserved + device.context;
        let taken = answer.budget.outside()
            + answer.budget.nccl().map_or(xmem::Bytes::ZERO, |nccl| nccl.expected);
        Self {
            schema: REPLAY,
            trace,
            verdict: answer.verdict.name(),
            decision: decision.name(),
            tight_by: tight_by.map(TightBy::name),
            summary: match decision {
                Decision::NoVerdict => crate::words::withheld(reason).to_owned(),
                _ => crate::replay::text::said(answer),
            },
            withheld: answer.withheld.iter().map(|reason| reason.code()).collect(),
            warnings: answer.warnings(),
            integrity: IntegrityDto::new(&answer.integrity),
            settings,
            device: DeviceDto {
                name: &device.name,
                title: &device.title,
                memory_bytes: device.memory.get(),
                context_bytes: (device.context - taken).get(),
                available_bytes: device.available().get(),
                compute_capability: device.compute_capability.to_string(),
                sms: device.sms,
            },
            nccl: answer.budget.nccl().map(|nccl| NcclDto {
                communicators: nccl.communicators,
                communicators_counted: nccl.is_counted,
                expected_bytes: nccl.expected.get(),
                range_bytes: BoundsDto::from((nccl.low, nccl.high)),
            }),
            outside_bytes: Some(answer.budget.outside().get()).filter(|bytes| *bytes > 0),
            target: target(answer),
            iterations: IterationRangeDto {
                from: answer.iterations.start.0,
                to: answer.iterations.end.0,
                of: answer.trace.iterations.len(),
            },
            recorded: answer.trace.gpu.as_ref().map(RecordedDto::from),
            peak: PeakDto {
                allocated_bytes: peak.allocated.get(),
                requested_bytes: peak.requested.get(),
                reserved_bytes: peak.reserved.get(),
                device_bytes: peak.device.get(),
                at: peak.at.as_ref().map(PlaceDto::from),
                reserved_at: peak.reserved_at.as_ref().map(PlaceDto::from),
            },
            range: spread(answer),
            headroom_bytes: answer.headroom().map(xmem::Bytes::get),
            shortfall_bytes: answer.shortfall().map(xmem::Bytes::get),
            need_bytes: (decision != Decision::NoVerdict).then(|| answer.need.least.get()),
            ample_bytes: (decision != Decision::NoVerdict).then(|| answer.need.ample.get()),
            unlimited: UnlimitedDto {
                reserved_bytes: peak.ample_reserved.get(),
                device_bytes: unlimited.get(),
                fits: unlimited <= device.memory,
            },
            min_capacity_bytes: answer.memory.min_capacity.map(xmem::Bytes::get),
            other_gpus: answer.other_gpus.iter().map(GpuNeedDto::from).collect(),
            out_of_memory: answer.memory.out_of_memory.as_ref().map(|oom| OutOfMemoryDto {
                at: oom.at.as_ref().map(PlaceDto::from),
                request_index: oom.request,
                requested_bytes: oom.requested.get(),
                tried_bytes: oom.tried.get(),
                free_bytes: oom.free.get(),
                allocated_bytes: oom.allocated.get(),
                reserved_bytes: oom.reserved.get(),
                needed_bytes: oom.needed.get(),
            }),
            unmodeled: unmodeled(answer),
            by_role: by_role(answer),
            per_iteration: answer
                .memory
                .per_iteration
                .iter()
                .map(|i| IterationDto {
                    iteration: i.iteration.map(|id| id.0),
                    allocated_bytes: i.allocated.get(),
                    reserved_bytes: i.reserved.get(),
                })
                .collect(),
            largest_blocks: answer.memory.largest.iter().map(block).collect(),
            fragmentation: fragmentation(answer),
            allocator: allocator(answer),
            curve: curve(answer),
            rules: (rules == Rules::Explain).then(|| answer.rules.iter().map(rule).collect()),
            diagnostics: answer.findings.iter().map(FindingDto::from).collect(),
        }
    }
}

fn spread(answer: &Answer) -> PeakRangeDto {
    let range = &answer.memory.range;
    let (least, most) = answer.device().context_bounds();
    let reserved = BoundsDto::from(&range.reserved);
    PeakRangeDto {
        allocated_bytes: BoundsDto::from(&range.allocated),
        device_bytes: BoundsDto {
            low: reserved.low + least.get(),
            high: reserved.high + most.get(),
        },
        reserved_bytes: reserved,
        confidence: range.confidence.name(),
        uncertainties: range
            .uncertainties
            .iter()
            .map(|uncertainty| UncertaintyDto {
                name: uncertainty.name,
                blocks: uncertainty.blocks,
                allocated_bytes: BoundsDto::from(&uncertainty.allocated),
                reserved_bytes: BoundsDto::from(&uncertainty.reserved),
            })
            .collect(),
    }
}

fn unmodeled(answer: &Answer) -> UnmodeledDto<'_> {
    let operators = answer.memory.unmodeled.iter();
    UnmodeledDto {
        bytes: answer.memory.unmodeled.iter().map(|share| share.bytes.get()).sum(),
        operators: operators
            .map(|share| OperatorDto {
                op: &share.op,
                bytes: share.bytes.get(),
                blocks: share.blocks,
            })
            .collect(),
    }
}

fn target(answer: &Answer) -> TargetDto<'_> {
    let target = &answer.target;
    TargetDto {
        torch: target.torch.to_string(),
        optimizer_impl: match target.optimizer.unwrap_or_default() {
            OptimizerImpl::Foreach => "foreach",
            OptimizerImpl::Fused => "fused",
            OptimizerImpl::ForLoop => "for-loop",
        },
        zero_grad: target.zero_grad.map(|place| match place {
            ZeroGradPlace::BeforeBackward => "pos0",
            ZeroGradPlace::IterationStart => "pos1",
        }),
        set_to_none: target.set_to_none,
        world_size: target.resharding.as_ref().map(|resharding| resharding.rank().world_size),
        collectives: CollectivesDto::new(&target.completion),
        disabled_rules: target.disabled.iter().map(String::as_str).collect(),
        convolutions: answer.convolutions.source(),
        allocator: SetupDto::from(&answer.setup),
    }
}

fn by_role(answer: &Answer) -> RolesDto {
    let entries =
        answer.memory.by_role.iter().map(|s| (s.role.name().to_owned(), s.bytes.get().into()));
    RolesDto(entries.collect())
}

fn block(block: &xmem::predict::LiveBlock) -> BlockDto<'_> {
    BlockDto {
        bytes: block.bytes.get(),
        requested_bytes: block.requested.get(),
        role: block.role.name(),
        evidence: Some(block.evidence).filter(|e| !e.is_empty()),
        rule: block.rule,
        origin: PlaceDto::from(&block.origin),
    }
}

fn fragmentation(answer: &Answer) -> FragmentationDto {
    let f = &answer.memory.fragmentation;
    FragmentationDto {
        at: f.at.name(),
        reserved_bytes: f.reserved.get(),
        unused_bytes: f.unused.get(),
        releasable_bytes: f.releasable.get(),
        pieces: f.pieces,
        largest_piece_bytes: f.largest_piece.get(),
        rounding_bytes: f.rounding.get(),
    }
}

fn allocator(answer: &Answer) -> AllocatorDto {
    let a = &answer.memory.allocator;
    AllocatorDto {
        requests: a.requests,
        allocations: a.allocations,
        segments_peak: a.segments_peak,
        device_allocs: a.device_allocs,
        device_frees: a.device_frees,
        retries: a.retries,
    }
}

fn curve(answer: &Answer) -> CurveDto {
    let c = &answer.memory.curve;
    CurveDto {
        requests: c.requests,
        iteration_starts: c
            .iterations
            .iter()
            .map(|&(id, point)| StartDto { iteration: id.0, point })
            .collect(),
        allocated_bytes: c.allocated.iter().map(|b| b.get()).collect(),
        reserved_bytes: c.reserved.iter().map(|b| b.get()).collect(),
    }
}

fn rule(effect: &xmem::orchestrator::RuleEffect) -> RuleDto<'_> {
    let count = |(blocks, bytes): (u64, xmem::Bytes)| CountDto { blocks, bytes: bytes.get() };
    let (blocks, before, after) = effect.resized;
    RuleDto {
        rule: effect.rule.name,
        summary: effect.rule.summary,
        source: effect.rule.source,
        dropped: count(effect.dropped),
        added: count(effect.added),
        resized: ResizedDto { blocks, bytes_before: before.get(), bytes_after: after.get() },
        retimed: count(effect.retimed),
    }
}
