//! `xmem.replay/2`.

mod contents;
mod coverage;
mod peaks;
mod rules;

use crate::bounds::BoundsDto;
use crate::findings::FindingDto;
use crate::recorded::RecordedDto;
use crate::setup::SetupDto;
use contents::{BlockDto, FragmentationDto, RolesDto, UnmodeledDto};
use coverage::CoverageDto;
use peaks::{IterationDto, OutOfMemoryDto, PeakDto, PeakRangeDto, UnlimitedDto};
use rules::RuleDto;
use serde::Serialize;
use xmem::analyzer::integrity::Integrity;
use xmem::devices::Bandwidth;
use xmem::orchestrator::{CompletionModel, StreamCompletion, ZeroGradPlace};
use xmem::{Answer, Decision, GpuNeed, TightBy};

/// The schema of [`ReplayDocument`].
pub(crate) const REPLAY: &str = "xmem.replay/2";

/// The answer of xmem replay about one trace. All sizes are integers in bytes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayDocument<'a> {
    schema: &'static str,
    /// The input, as given on the command line.
    trace: &'a str,
    /// fits: the replay with the device's capacity runs to its end, where the allocator may release cached memory and
    /// retry, as PyTorch does; does_not_fit: it runs out of memory; withheld: too much is missing from the trace, or it
    /// is damaged (`withheld` has the reasons); damaged_fits and damaged_does_not_fit: with --lenient, what the replay
    /// of a damaged trace does.
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem::Verdict>"))]
    verdict: &'static str,
    /// The decision about the job: fits; tight: it may run and it may not (`tight_by`); does_not_fit: it runs out of
    /// memory, over the whole range; no_verdict: the verdict is withheld, or the trace is damaged. The same as that of
    /// xmem check without a margin.
    #[cfg_attr(test, schemars(extend("enum" = ["fits", "tight", "does_not_fit", "no_verdict"])))]
    decision: &'static str,
    /// Why it is tight: may_fail: it is expected to run, and the upper end of the range does not fit; may_fit: it is
    /// expected to run out of memory, and the lower end of the range fits; recording: the trace is doubtful. Null if it
    /// is not.
    #[cfg_attr(test, schemars(extend("enum" = ["may_fail", "may_fit", "recording", null])))]
    tight_by: Option<&'static str>,
    /// Need against the device's memory in words, as every form of output has it; the reason where there is no verdict.
    summary: String,
    /// The codes of the reasons for which the verdict is withheld; empty where it is not.
    withheld: Vec<&'static str>,
    /// The number of diagnostics that are warnings or serious.
    warnings: usize,
    /// Whether the events of the trace agree with each other as those of an intact recording do.
    integrity: IntegrityDto,
    /// The options of the command line that the answer depends on, in a fixed order, so that equal settings have equal
    /// text.
    settings: &'a str,
    /// The device.
    device: DeviceDto<'a>,
    /// Memory that NCCL takes outside PyTorch's allocator, as part of `peak.device_bytes`. Only of distributed jobs
    /// that use NCCL.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "NcclDto"))]
    nccl: Option<NcclDto>,
    /// Memory that the program took from a virtual GPU outside PyTorch's allocator (symmetric memory, cudaMalloc), as
    /// part of `peak.device_bytes`. Only where there is some.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "u64"))]
    outside_bytes: Option<u64>,
    /// PyTorch version and what-ifs.
    target: TargetDto<'a>,
    /// The replayed iterations.
    iterations: IterationRangeDto,
    /// The recording, if it was made on a GPU; absent for recordings of a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "RecordedDto<'a>"))]
    recorded: Option<RecordedDto<'a>>,
    /// The peaks. If the job does not fit, those of a device with unlimited memory.
    peak: PeakDto<'a>,
    /// The range of the peaks, with its uncertainties. Each uncertainty has bounds, and the job is replayed at these
    /// bounds. Other errors are not part of the range.
    range: PeakRangeDto,
    /// Device memory left at the peak; null if the job does not fit.
    headroom_bytes: Option<u64>,
    /// What `need_bytes` is beyond the device's memory; null if the job fits.
    shortfall_bytes: Option<u64>,
    /// Device memory that the job needs, context included: what it takes if it fits, else the smallest device memory in
    /// which it runs. Null without a verdict.
    need_bytes: Option<u64>,
    /// Device memory that the job takes where there is room: the allocator caches more there. Null without a verdict.
    ample_bytes: Option<u64>,
    /// The same job on a device with unlimited memory, where cached memory is never released.
    unlimited: UnlimitedDto,
    /// The smallest device memory, context included, in which the job runs; null without --min-capacity.
    min_capacity_bytes: Option<u64>,
    /// What the job needs on the other GPUs of its process, each taken for the device of the answer; empty where it was
    /// recorded on one. The answer is about the GPU with the worst decision.
    other_gpus: Vec<GpuNeedDto>,
    /// The allocation that fails.
    out_of_memory: Option<OutOfMemoryDto<'a>>,
    /// Blocks alive at the peak of allocated memory that come from operators without a CUDA model; their CPU sizes are
    /// used.
    unmodeled: UnmodeledDto<'a>,
    /// Bytes alive at the peak of allocated memory, by role.
    #[cfg_attr(test, schemars(schema_with = "crate::schemas::bytes_by_role"))]
    by_role: RolesDto,
    /// Peaks iteration by iteration.
    per_iteration: Vec<IterationDto>,
    /// What of the script the answer is about.
    coverage: CoverageDto,
    /// Memory of the host.
    host: HostDto,
    /// The largest blocks alive at the peak of allocated memory, largest first.
    largest_blocks: Vec<BlockDto<'a>>,
    /// Reserved memory that holds no tensor, where memory is short: at the out-of-memory, else at the peak of allocated
    /// memory.
    fragmentation: FragmentationDto,
    /// Counts over the replay.
    allocator: AllocatorDto,
    /// Memory over the run in equal steps of requests; each point holds the highest value of its step.
    curve: CurveDto,
    /// The effect of each rule of the lowering, in order; null without --explain.
    rules: Option<Vec<RuleDto<'a>>>,
    /// Odd or missing content.
    diagnostics: Vec<FindingDto<'a>>,
}

/// Whether the events of the recording agree with each other.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct IntegrityDto {
    /// intact; doubtful: something disagrees, within the bounds of intact recordings; damaged: more disagrees than in
    /// any intact recording.
    #[cfg_attr(test, schemars(extend("enum" = ["intact", "doubtful", "damaged"])))]
    condition: &'static str,
    /// The checks that the trace has the means for.
    checks: Vec<CheckDto>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CheckDto {
    /// The name of the check, also the code of its diagnostic.
    check: &'static str,
    /// Events or operators that disagree.
    affected: u64,
    /// Events or operators that were checked.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct DeviceDto<'a> {
    /// Short name; custom for a bare capacity.
    name: &'a str,
    /// Name as torch.cuda.get_device_name prints it.
    title: &'a str,
    /// Total memory a process can see.
    memory_bytes: u64,
    /// Memory one process takes outside PyTorch's allocator.
    context_bytes: u64,
    /// Memory available to PyTorch's allocator: total memory minus context.
    available_bytes: u64,
    /// Compute capability, for example 8.6.
    compute_capability: String,
    /// Streaming multiprocessors.
    sms: u32,
}

/// Memory of NCCL outside the allocator.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NcclDto {
    communicators: u32,
    /// False if the recording names process groups only, each of which may have made a communicator.
    communicators_counted: bool,
    /// On a machine as usual for the GPU.
    expected_bytes: u64,
    range_bytes: BoundsDto,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TargetDto<'a> {
    /// PyTorch version, major and minor.
    torch: String,
    /// The implementation of the optimizer on the GPU.
    #[cfg_attr(test, schemars(extend("enum" = ["foreach", "fused", "for-loop"])))]
    optimizer_impl: &'static str,
    /// Another place at which gradients are cleared: pos0 just before backward, pos1 at the start of the iteration;
    /// null for the place in the trace.
    #[cfg_attr(test, schemars(extend("enum" = ["pos0", "pos1", null])))]
    zero_grad: Option<&'static str>,
    /// true if clearing gradients frees their memory.
    set_to_none: bool,
    /// Another number of ranks than recorded (--what-if world-size); null for the recorded one.
    world_size: Option<u32>,
    /// When collectives and other work on the streams of a virtual GPU are complete (--collectives).
    collectives: CollectivesDto,
    /// The what-ifs as options have them (zero-grad=pos0); missing where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    what_ifs: Vec<String>,
    /// Disabled rules of the lowering.
    disabled_rules: Vec<&'a str>,
    /// The source of the workspace sizes of convolutions: a cuDNN library, the built-in model, or none.
    convolutions: &'a str,
    allocator: SetupDto<'a>,
}

/// When work on streams is complete.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CollectivesDto {
    /// at-once: as recorded; bandwidth: after the durations of the model; run-ahead: when the host waits for it.
    #[cfg_attr(test, schemars(extend("enum" = ["at-once", "bandwidth", "run-ahead"])))]
    complete: &'static str,
    /// The parameters of the model of durations; null for the others. Rates are those of one direction.
    model: Option<ModelDto>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ModelDto {
    /// As collectives reach it; null without NVLink.
    nvlink_bytes_per_second: Option<u64>,
    /// As transfers reach it.
    pcie_bytes_per_second: u64,
    /// Of each GPU.
    network_bytes_per_second: u64,
    /// Peak of the device's memory.
    memory_bytes_per_second: u64,
    /// Peak operations, a multiply-add counted as two.
    float32_per_second: u64,
    /// The same in bfloat16.
    bfloat16_per_second: u64,
    /// The share of the peak that operators reach.
    compute_efficiency: f64,
    /// The share of the memory's bandwidth that they reach.
    memory_efficiency: f64,
    /// The share of the recorded time that the host takes.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct IterationRangeDto {
    /// First, counted from 0.
    from: u32,
    /// The one after the last.
    to: u32,
    /// Iterations in the trace.
    of: usize,
}

/// Memory of the host; null where the recording does not say it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HostDto {
    /// The peak of pinned memory, as PyTorch's allocator for it reserves it.
    pinned_bytes: Option<u64>,
    /// The highest pageable memory of tensors, up to the end of the recorded iterations.
    allocated_bytes: Option<u64>,
}

/// Another GPU of the process.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GpuNeedDto {
    /// The GPU's index in the recording.
    #[cfg_attr(test, schemars(range(min = 0)))]
    index: i16,
    /// As `decision` of the answer.
    #[cfg_attr(test, schemars(extend("enum" = ["fits", "tight", "no_verdict", "does_not_fit"])))]
    decision: &'static str,
    /// The peak of allocated memory.
    allocated_bytes: u64,
    /// The peak of reserved memory.
    reserved_bytes: u64,
    /// The device memory, context included, that the job needs at least on this GPU.
    need_bytes: u64,
    /// What it takes where there is room.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AllocatorDto {
    /// Requests replayed.
    requests: u64,
    /// Allocations.
    allocations: u64,
    /// The largest number of segments at one time.
    segments_peak: u64,
    /// cudaMalloc calls.
    device_allocs: u64,
    /// cudaFree calls.
    device_frees: u64,
    /// Allocations that succeeded only after all cached memory was released.
    retries: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CurveDto {
    /// The number of requests in the whole curve.
    requests: u64,
    /// Where iterations begin.
    iteration_starts: Vec<StartDto>,
    /// Allocated memory.
    allocated_bytes: Vec<u64>,
    /// Reserved memory.
    reserved_bytes: Vec<u64>,
}

/// A mark.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StartDto {
    /// Iteration, counted from 0.
    iteration: u32,
    /// Index into the two lists.
    point: usize,
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
        let (decision, tight_by) = answer.decision();
        let reason = answer.withheld.first().map(|reason| reason.code());
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
                _ => crate::replay::text::needs(answer),
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
            peak: (&answer.memory.peak).into(),
            range: answer.into(),
            headroom_bytes: answer.headroom().map(xmem::Bytes::get),
            shortfall_bytes: answer.shortfall().map(xmem::Bytes::get),
            need_bytes: (decision != Decision::NoVerdict).then(|| answer.need.least.get()),
            ample_bytes: (decision != Decision::NoVerdict).then(|| answer.need.ample.get()),
            unlimited: answer.into(),
            min_capacity_bytes: answer.memory.min_capacity.map(xmem::Bytes::get),
            other_gpus: answer.other_gpus.iter().map(GpuNeedDto::from).collect(),
            out_of_memory: answer.memory.out_of_memory.as_ref().map(OutOfMemoryDto::from),
            unmodeled: answer.memory.unmodeled.as_slice().into(),
            by_role: answer.memory.by_role.as_slice().into(),
            per_iteration: answer.memory.per_iteration.iter().map(IterationDto::from).collect(),
            coverage: (&answer.memory.coverage).into(),
            host: HostDto {
                pinned_bytes: answer.budget.host().pinned.map(xmem::Bytes::get),
                allocated_bytes: answer.budget.host().allocated.map(xmem::Bytes::get),
            },
            largest_blocks: answer.memory.largest.iter().map(BlockDto::from).collect(),
            fragmentation: (&answer.memory.fragmentation).into(),
            allocator: allocator(answer),
            curve: curve(answer),
            rules: (rules == Rules::Explain)
                .then(|| answer.rules.iter().map(RuleDto::from).collect()),
            diagnostics: answer.findings.iter().map(FindingDto::from).collect(),
        }
    }
}

fn target(answer: &Answer) -> TargetDto<'_> {
    let target = &answer.target;
    TargetDto {
        torch: target.torch.to_string(),
        optimizer_impl: target.optimizer.unwrap_or_default().name(),
        zero_grad: target.zero_grad.map(ZeroGradPlace::name),
        set_to_none: target.set_to_none,
        world_size: target.resharding.as_ref().map(|resharding| resharding.rank().world_size),
        collectives: CollectivesDto::new(&target.completion),
        what_ifs: target.what_ifs.iter().map(ToString::to_string).collect(),
        disabled_rules: target.disabled.iter().map(String::as_str).collect(),
        convolutions: answer.convolutions.source(),
        allocator: SetupDto::from(&answer.setup),
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
