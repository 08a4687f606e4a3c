//! The answer: a value that owns all it says, so that it outlives the trace.

use crate::compiled;
use crate::distributed;
use crate::facts::TraceFacts;
use crate::growth;
use crate::job::Job;
use crate::nccl::NcclMemory;
use crate::recorded;
use crate::recorded_twice;
use crate::timings::Timings;
use crate::verdict::{Decision, IntegrityPolicy, Need, TightBy, Verdict};
use std::ops::Range;
use xmem_analyzer::integrity::{Condition, Integrity};
use xmem_analyzer::recording::Rank;
use xmem_convolutions::ConvolutionAnswers;
use xmem_orchestrator::{RuleEffect, StreamCompletion, Target};
use xmem_predict::{
    AllocatorCounts, AllocatorSetup, CapacitySearch, Confidence, Curve, Finding, Fragmentation,
    IterationPeak, LiveBlock, Locator, OutOfMemory, Peak, PeakRange, PredictedMemory, Prediction,
    RoleShare, UnmodeledShare,
};
use xmem_profiles::Device;
use xmem_types::{Bytes, Diagnostics, IterationId, Severity, WithheldReason};

/// The memory that a job needs, over time and by cause, and the verdict on one device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The decision whether the job fits.
    pub verdict: Verdict,
    /// The reasons for which the verdict is withheld; empty where it is not.
    pub withheld: Vec<WithheldReason>,
    /// True if more memory may have been needed before the recording began: the peaks are the least that the job needs.
    pub is_lower_bound: bool,
    /// Whether the events of the recording agree with each other as those of an intact one do.
    pub integrity: Integrity,
    /// GPU, PyTorch version and what-ifs of the estimate.
    pub target: Target,
    /// The place of the process among those of the job; with another number of ranks, in the job that was replayed.
    pub rank: Option<Rank>,
    /// The memory of NCCL, which the context of the target's device includes; none if the job does not use it.
    pub nccl: Option<NcclMemory>,
    /// Memory that the program took from the device outside PyTorch's allocator, which the context of the target's device
    /// includes: symmetric memory, and what libraries allocate themselves.
    pub outside: Bytes,
    /// The plans of the job's convolutions, with their source.
    pub convolutions: ConvolutionAnswers,
    /// The allocator that was simulated, with its options.
    pub setup: AllocatorSetup,
    /// The iterations it is about; all of the trace if none were chosen.
    pub iterations: Range<IterationId>,
    /// The peaks.
    pub peak: Peak,
    /// The range in which the peaks lie.
    pub range: PeakRange,
    /// The memory alive at the peak of allocated memory that is made by operators of which it is
    /// not known what they request on CUDA, most bytes first.
    pub unmodeled: Vec<UnmodeledShare>,
    /// Live bytes at the peak of allocated memory, by role, in the order of
    /// [`Role::ALL`](crate::Role::ALL).
    pub by_role: Vec<RoleShare>,
    /// The largest blocks alive at that peak, largest first.
    pub largest: Vec<LiveBlock>,
    /// Peaks iteration by iteration; the first entry may stand for what comes before the first.
    pub per_iteration: Vec<IterationPeak>,
    /// Memory over the run.
    pub curve: Curve,
    /// The reserved memory that holds no tensor.
    pub fragmentation: Fragmentation,
    /// The allocator's counts.
    pub allocator: AllocatorCounts,
    /// The request at which the job runs out of memory on the device, if it does.
    pub out_of_memory: Option<OutOfMemory>,
    /// The device memory that the job needs, and what it takes where there is room.
    pub need: Need,
    /// The smallest device memory in which the job runs, if it was requested.
    pub min_capacity: Option<Bytes>,
    /// What the job needs on the other GPUs that it was recorded on, which are devices of the same kind; no GPU's decision
    /// is worse than that of the answer.
    pub other_gpus: Vec<GpuNeed>,
    /// The effect of each rule of the lowering, in the order of the rules.
    pub rules: Vec<RuleEffect>,
    /// The oddities and gaps found by each stage.
    pub findings: Vec<Finding>,
    /// The content of the trace.
    pub trace: TraceFacts,
    /// Time taken by each stage. Not part of the result.
    pub timings: Timings,
}

/// What a job needs on one of the GPUs of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuNeed {
    /// The GPU's index in the recording.
    pub index: i16,
    /// What is said about the job on this GPU.
    pub decision: Decision,
    /// The peak of allocated memory.
    pub allocated: Bytes,
    /// The peak of reserved memory.
    pub reserved: Bytes,
    /// The device memory that the job needs, and what it takes where there is room.
    pub need: Need,
}

/// What was decided before the replay.
pub(crate) struct Decided {
    pub(crate) target: Target,
    pub(crate) convolutions: ConvolutionAnswers,
    pub(crate) rank: Option<Rank>,
    pub(crate) nccl: Option<NcclMemory>,
    pub(crate) outside: Bytes,
    /// Peaks of allocated and of reserved memory where work on the GPU is complete later than recorded.
    pub(crate) later: Vec<(Bytes, Bytes)>,
    pub(crate) search: CapacitySearch,
}

impl Answer {
    /// Puts together what each stage found.
    pub(crate) fn new(
        job: &Job,
        Decided { target, convolutions, rank, nccl, outside, later, search }: Decided,
        iterations: Range<IterationId>,
        policy: IntegrityPolicy,
        prediction: &Prediction<'_>,
        mut memory: PredictedMemory,
        timings: Timings,
    ) -> Self {
        let mut notes = job.diagnostics().clone();
        notes.extend(prediction.diagnostics().clone());
        notes.extend(std::mem::take(&mut memory.diagnostics));
        if job.profile().recording().is_some() {
            // PyTorch writes such events whatever is recorded; they were read as they are meant.
            notes.remove("repaired-event");
        }
        let is_as_recorded =
            target.resharding.is_none() && target.completion == StreamCompletion::AtOnce;
        let mut integrity = job.profile().integrity.clone();
        if let Some(gpu) = job.profile().gpu.as_ref().filter(|_| is_as_recorded) {
            let all =
                iterations == (IterationId(0)..IterationId::new(job.profile().iterations.len()));
            let unreached =
                recorded::compare(gpu, prediction.setup(), &memory.peak, all, &mut notes);
            // On a device that holds the recorded peak, too, the verdict does not depend on it.
            if unreached.is_some_and(|peak| memory.fits && peak > target.device.available()) {
                integrity.add_unreached_peak(&mut notes);
            }
        }
        report_single_length(prediction, &mut notes);
        let locator = Locator::new(job.profile());
        let condition = integrity.condition();
        let mut withheld = notes.withheld_reasons().to_vec();
        withheld.extend(policy.withholds(condition));
        let is_lower_bound = job.profile().gpu.as_ref().is_some_and(|gpu| !gpu.from_the_start);
        if is_lower_bound && memory.fits {
            withheld.push(WithheldReason::IncompleteHistory);
        }
        let virtual_gpu = job.profile().virtual_gpu();
        let is_assumed = virtual_gpu.is_some_and(xmem_analyzer::recording::VirtualGpu::is_assumed);
        if is_as_recorded {
            let device = &target.device;
            recorded_twice::widen(job.profile(), later, &mut memory, device, &mut notes);
        }
        if let Some(recording) = job.profile().recording() {
            let names = &recording.compiled_eagerly;
            compiled::widen(&mut memory, names, &target.device, &mut notes);
            // CUDA's autocast casts other operators than the CPU's: what differs is modeled, and not bounded.
            let is_cast_otherwise = !recording.autocast.is_empty()
                && !recording.cuda_autocast_lists
                && job.profile().gpu.is_none();
            if is_cast_otherwise && memory.range.confidence == Confidence::Certain {
                memory.range.confidence = Confidence::Likely;
            }
        }
        if let Some(kind) = job.profile().distributed().filter(|_| job.profile().gpu.is_none()) {
            distributed::doubt(kind, &mut memory.range, &mut notes);
        }
        // What the allocator had cached when the recording began is not known, nor what another number of ranks
        // changes beside the sizes of shards.
        let is_late = notes.get("made-before-trace").is_some();
        if (is_late || !is_as_recorded) && memory.range.confidence == Confidence::Certain {
            memory.range.confidence = Confidence::Likely;
        }
        // Operators have other sizes on a GPU, which follow from their shapes.
        let has_shapes = job.profile().gpu.is_some() || notes.get("no-shapes").is_none();
        if !has_shapes && memory.range.confidence == Confidence::Certain {
            memory.range.confidence = Confidence::Likely;
        }
        growth::doubt(&mut memory, &target.device, &mut notes);
        let is_doubtful = condition > Condition::Intact || is_assumed;
        let confidence = memory.range.confidence;
        if is_doubtful && matches!(confidence, Confidence::Certain | Confidence::Likely) {
            memory.range.confidence = Confidence::Doubtful;
        }
        let verdict = Verdict::decide(memory.fits, condition, &withheld);
        let need = need(verdict, &memory, (search, target.device.memory), || {
            prediction.min_capacity(&iterations)
        });
        Self {
            verdict,
            withheld,
            is_lower_bound,
            integrity,
            target,
            rank,
            nccl,
            outside,
            convolutions,
            setup: prediction.setup().clone(),
            iterations,
            peak: memory.peak,
            range: memory.range,
            unmodeled: memory.unmodeled,
            by_role: memory.by_role,
            largest: memory.largest,
            per_iteration: memory.per_iteration,
            curve: memory.curve,
            fragmentation: memory.fragmentation,
            allocator: memory.allocator,
            out_of_memory: memory.out_of_memory,
            need,
            min_capacity: memory.min_capacity,
            other_gpus: Vec::new(),
            rules: prediction.rule_effects().to_vec(),
            findings: notes.iter().map(|note| locator.finding(note)).collect(),
            trace: job.facts().clone(),
            timings,
        }
    }

    /// The number of findings that make the answer less precise, or withhold the verdict.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.findings.iter().filter(|finding| finding.severity >= Severity::Warning).count()
    }

    /// The device of the estimate; its context includes the memory of [`nccl`](Self::nccl).
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.target.device
    }

    /// Device memory that stays free at the peak; none if the job does not fit.
    #[must_use]
    pub fn headroom(&self) -> Option<Bytes> {
        let (memory, peak) = (self.device().memory, self.peak.device);
        (self.out_of_memory.is_none() && peak <= memory).then(|| memory - peak)
    }

    /// The memory that the job needs at least beyond that of the device; none if it fits.
    #[must_use]
    pub fn shortfall(&self) -> Option<Bytes> {
        self.out_of_memory.as_ref().map(|_| self.need.least - self.device().memory)
    }

    /// What is said about the job on the device, and why it is tight, if it is.
    #[must_use]
    pub fn decision(&self) -> (Decision, Option<TightBy>) {
        Decision::of(self.verdict, self.range.confidence)
    }

    /// What is said about the GPU that the answer is about.
    fn of_gpu(&self) -> Option<GpuNeed> {
        Some(GpuNeed {
            index: self.trace.gpu.as_ref()?.index,
            decision: self.decision().0,
            allocated: self.peak.allocated,
            reserved: self.peak.reserved,
            need: self.need,
        })
    }

    /// The answer about all GPUs of a process: that about the one with the worst decision, the first of several.
    pub(crate) fn of_process(first: Self, others: Vec<Self>) -> Self {
        let mut all = vec![first];
        all.extend(others);
        let gpus: Vec<GpuNeed> = all.iter().filter_map(Self::of_gpu).collect();
        // Of equal ones, the last is taken.
        let worst = all.into_iter().rev().max_by_key(|answer| answer.decision().0);
        let mut worst = worst.expect("there is the first one");
        let own = worst.of_gpu().map(|gpu| gpu.index);
        worst.other_gpus = gpus.into_iter().filter(|gpu| Some(gpu.index) != own).collect();
        worst
    }
}

/// The need of a job; `least` searches for the smallest device memory in which it runs.
fn need(
    verdict: Verdict,
    memory: &PredictedMemory,
    (search, capacity): (CapacitySearch, Bytes),
    least: impl FnOnce() -> Bytes,
) -> Need {
    let peak = &memory.peak;
    let (decision, _) = Decision::of(verdict, memory.range.confidence);
    let ample = peak.device - peak.reserved + peak.ample_reserved;
    let Some(oom) = &memory.out_of_memory else {
        let is_open = decision == Decision::Tight && search != CapacitySearch::Skip;
        return match is_open {
            true => Need { least: memory.min_capacity.unwrap_or_else(least), ample },
            false => Need { least: peak.device, ample: peak.device },
        };
    };
    let ample = ample.max(oom.needed);
    let least = match search {
        CapacitySearch::Skip => ample,
        _ => memory.min_capacity.unwrap_or_else(least),
    };
    // A job that runs in some memory may run out of a little more: releasing cached memory earlier can leave better
    // gaps. Then what is known to be enough from there on is what it needs.
    let least = if least > capacity { least } else { ample };
    Need { least, ample }
}

/// A note on a language model whose recorded batches all have one length.
fn report_single_length(prediction: &Prediction<'_>, notes: &mut Diagnostics) {
    if let Some(length) = prediction.single_length() {
        notes.report("one-sequence-length", Severity::Note, None, || {
            format!(
                "all recorded iterations have sequence length {length}; if lengths vary, the peak depends on \
                 their order: record with `xmem profile --vary seq=A..B` and replay with `--vary seq=A..B`"
            )
        });
    }
}
