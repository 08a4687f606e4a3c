//! The answer: a value that owns all it says, so that it outlives the trace.

use crate::facts::TraceFacts;
use crate::predicted::PredictedJob;
use crate::timings::{Stage, Timings};
use crate::verdict::{Decision, Need, TightBy, Verdict};
use std::ops::Range;
use xmem_analyzer::integrity::Integrity;
use xmem_analyzer::recording::Rank;
use xmem_convolutions::ConvolutionAnswers;
use xmem_devices::Device;
use xmem_orchestrator::{RuleEffect, Target};
use xmem_predict::doubts::{Assessment, Subject};
use xmem_predict::{
    AllocatorSetup, CapacitySearch, DeviceBudget, Finding, Locator, PredictedMemory,
};
use xmem_types::{Bytes, IterationId, Severity, WithheldReason};

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
    /// The device of the target, with what others than PyTorch's allocator take from its memory.
    pub budget: DeviceBudget,
    /// The plans of the job's convolutions, with their source.
    pub convolutions: ConvolutionAnswers,
    /// The allocator that was simulated, with its options.
    pub setup: AllocatorSetup,
    /// The iterations it is about; all of the trace if none were chosen.
    pub iterations: Range<IterationId>,
    /// The predicted memory: peaks with their range, by cause and over the run.
    pub memory: PredictedMemory,
    /// The device memory that the job needs, and what it takes where there is room.
    pub need: Need,
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

impl PredictedJob<'_> {
    /// The memory that the job needs, over time and by cause, and the verdict. Of a process with several GPUs, the answer is
    /// about the one with the worst decision.
    #[must_use]
    pub fn answer(&self) -> Answer {
        self.answer_observed(&|_| {})
    }

    /// Like [`answer`](Self::answer), and calls `observer` when the stage begins.
    #[must_use]
    pub fn answer_observed(&self, observer: &dyn Fn(Stage)) -> Answer {
        observer(Stage::Replay);
        let all = [self].into_iter().chain(&self.others).map(Self::of_gpu);
        Answer::of_process(all.collect())
    }

    /// The answer about the GPU whose memory was analyzed, whatever others there are.
    fn of_gpu(&self) -> Answer {
        let mut timings = self.timings.clone();
        let memory =
            timings.time(Stage::Replay, || self.prediction.memory(&self.iterations, &self.detail));
        Answer::new(self, memory, timings)
    }
}

impl Answer {
    /// The answer about a predicted job, from its replay.
    fn new(predicted: &PredictedJob<'_>, memory: PredictedMemory, timings: Timings) -> Self {
        let PredictedJob { job, prediction, target, budget, convolutions, iterations, .. } =
            predicted;
        let mut notes = job.diagnostics().clone();
        notes.extend(prediction.diagnostics().clone());
        if job.profile().recording().is_some() {
            // PyTorch writes such events whatever is recorded; they were read as they are meant.
            notes.remove("repaired-event");
        }
        let subject = Subject { prediction, target, convolutions, iterations };
        let Assessment { memory, integrity, withheld: others, notes } =
            Assessment::new(&subject, memory, notes);
        let condition = integrity.condition();
        let mut withheld = notes.withheld_reasons().to_vec();
        withheld.extend(predicted.integrity.withholds(condition));
        withheld.extend(others);
        let is_missing = predicted.to_the_end && !memory.coverage.extent.is_complete();
        withheld.extend((is_missing && memory.fits).then_some(WithheldReason::NotToTheEnd));
        let verdict = Verdict::decide(memory.fits, condition, &withheld);
        let search = (predicted.detail.capacity, budget.device().memory);
        let need = need(verdict, &memory, search, || prediction.min_capacity(iterations));
        let locator = Locator::new(job.profile());
        Self {
            verdict,
            withheld,
            is_lower_bound: prediction.is_lower_bound(),
            integrity,
            target: target.clone(),
            rank: predicted.rank.clone(),
            budget: budget.clone(),
            convolutions: convolutions.clone(),
            setup: prediction.setup().clone(),
            iterations: iterations.clone(),
            memory,
            need,
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

    /// The device of the estimate; its context includes what others than the allocator take ([`DeviceBudget`]).
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.target.device
    }

    /// Device memory that stays free at the peak; none if the job does not fit.
    #[must_use]
    pub fn headroom(&self) -> Option<Bytes> {
        let (memory, peak) = (self.device().memory, self.memory.peak.device);
        (self.memory.out_of_memory.is_none() && peak <= memory).then(|| memory - peak)
    }

    /// The memory that the job needs at least beyond that of the device; none if it fits.
    #[must_use]
    pub fn shortfall(&self) -> Option<Bytes> {
        self.memory.out_of_memory.as_ref().map(|_| self.need.least - self.device().memory)
    }

    /// The least device memory with which the job runs: what the search for it found, where it was made, else what the job needs.
    #[must_use]
    pub fn least_capacity(&self) -> Bytes {
        self.memory.min_capacity.unwrap_or(self.need.least)
    }

    /// What is said about the job on the device, and why it is tight, if it is.
    #[must_use]
    pub fn decision(&self) -> (Decision, Option<TightBy>) {
        Decision::of(self.verdict, self.memory.range.confidence)
    }

    /// What is said about the GPU that the answer is about.
    fn of_gpu(&self) -> Option<GpuNeed> {
        Some(GpuNeed {
            index: self.trace.gpu.as_ref()?.index,
            decision: self.decision().0,
            allocated: self.memory.peak.allocated,
            reserved: self.memory.peak.reserved,
            need: self.need,
        })
    }

    /// The answer about all GPUs of a process: that about the one with the worst decision, the first of several.
    fn of_process(all: Vec<Self>) -> Self {
        if all.len() == 1 {
            return all.into_iter().next().expect("there is the first one");
        }
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
