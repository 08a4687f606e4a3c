//! The builder, and the way from a job to an answer.

use crate::answer::{Answer, Decided};
use crate::cudnn_release;
use crate::error::EstimateError;
use crate::iterations::Iterations;
use crate::job::Job;
use crate::lengths::{self, LengthsAnswer};
use crate::nccl::NcclMemory;
use crate::script_settings;
use crate::timings::Stage;
use crate::verdict::IntegrityPolicy;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use xmem_analyzer::recording::{Rank, VirtualGpu};
use xmem_convolutions::{ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource};
use xmem_cudnn::AutomaticSource;
use xmem_orchestrator::{
    CompletionModel, CudnnBenchmark, OptimizerImpl, Resharding, Schedule, StreamCompletion, Target,
    ZeroGradPlace, check_completion, depends_on_completion, parse_cublas_workspace_config,
};
use xmem_predict::{
    AllocatorError, AllocatorSettings, AllocatorSetup, CapacitySearch, Detail, LengthSettings,
    Prediction, SnapshotEnd, Timeline,
};
use xmem_profiles::{ComputeCapability, Device};
use xmem_snapshot::Snapshot;
use xmem_trace::ReadOptions;
use xmem_types::{Bytes, Diagnostics, IterationId, TorchVersion};

/// An estimate to be made: a device, a PyTorch version, what-ifs, and the detail of the answer.
///
/// One estimate serves any number of jobs.
#[derive(Clone, Debug)]
pub struct Estimate {
    target: Target,
    convolutions: Arc<dyn ConvolutionSource>,
    allocator: AllocatorSettings,
    read: ReadOptions,
    iterations: Option<Iterations>,
    detail: Detail,
    integrity: IntegrityPolicy,
    /// Another number of ranks than recorded.
    world_size: Option<u32>,
}

/// The treatment of gradients when they are cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClearedGradients {
    /// `set_to_none=True`, PyTorch's default since 2.0: their memory is freed.
    #[default]
    Dropped,
    /// `set_to_none=False`: they stay, as zeros.
    Kept,
}

/// Builds an [`Estimate`]; every setting has a default.
#[derive(Clone, Debug)]
#[must_use]
pub struct EstimateBuilder(Estimate);

impl Estimate {
    /// An estimate for `device`, with PyTorch's defaults.
    pub fn builder(device: Device) -> EstimateBuilder {
        EstimateBuilder(Self {
            target: Target::new(device),
            convolutions: Arc::new(AutomaticSource::from_environment()),
            allocator: AllocatorSettings::default(),
            read: ReadOptions::default(),
            iterations: None,
            detail: Detail::default(),
            integrity: IntegrityPolicy::default(),
            world_size: None,
        })
    }

    /// The same estimate for another device.
    #[must_use]
    pub fn on(&self, device: Device) -> Self {
        Self { target: Target { device, ..self.target.clone() }, ..self.clone() }
    }

    /// Device, PyTorch version and what-ifs. If no version was requested, a job's own may take
    /// the place of the assumed one: see [`Answer::target`].
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Checks the allocator's settings as far as possible before any trace is read.
    ///
    /// # Errors
    /// If no trace could make them right.
    pub fn check(&self) -> Result<(), AllocatorError> {
        self.allocator.check(&self.target.device)
    }

    /// Reads a trace file (plain, gzip or zstd; `-` is standard input) and estimates it.
    ///
    /// # Errors
    /// If the file cannot be read or is not a trace, or lacks the selected iterations, or the
    /// allocator's settings do not go with its PyTorch release.
    pub fn path(&self, path: impl AsRef<Path>) -> Result<Answer, EstimateError> {
        self.path_observed(path.as_ref(), &|_| {})
    }

    /// Like [`path`](Estimate::path), and calls `observer` when a stage begins.
    ///
    /// # Errors
    /// As [`path`](Estimate::path).
    pub fn path_observed(
        &self,
        path: &Path,
        observer: &dyn Fn(Stage),
    ) -> Result<Answer, EstimateError> {
        self.job_observed(&Job::observed(path, &self.read, observer)?, observer)
    }

    /// Estimates a trace held in memory (plain, gzip or zstd).
    ///
    /// # Errors
    /// As [`path`](Estimate::path).
    pub fn bytes(&self, bytes: &[u8]) -> Result<Answer, EstimateError> {
        self.job(&Job::from_bytes(bytes, &self.read)?)
    }

    /// Estimates a job that was read before.
    ///
    /// # Errors
    /// If the job lacks the selected iterations, or the allocator's settings do not go with its
    /// PyTorch release.
    pub fn job(&self, job: &Job) -> Result<Answer, EstimateError> {
        self.job_observed(job, &|_| {})
    }

    /// Like [`job`](Estimate::job), and calls `observer` when a stage begins.
    ///
    /// # Errors
    /// As [`job`](Estimate::job).
    pub fn job_observed(
        &self,
        job: &Job,
        observer: &dyn Fn(Stage),
    ) -> Result<Answer, EstimateError> {
        let first = self.gpu(job, observer)?;
        if job.others().is_empty() {
            return Ok(first);
        }
        let others = job.others().iter().map(|other| self.gpu(other, &|_| {}));
        Ok(Answer::of_process(first, others.collect::<Result<_, _>>()?))
    }

    /// Estimates the memory of the GPU that a job is about, whatever others there are.
    fn gpu(&self, job: &Job, observer: &dyn Fn(Stage)) -> Result<Answer, EstimateError> {
        let iterations = self.chosen(job)?;
        let plan = self.plan(job)?;
        let mut timings = job.timings().clone();
        observer(Stage::Lower);
        let (convolutions, lowered) = timings.time(Stage::Lower, || plan.lower(job));
        let later = plan.later(job, &convolutions, &iterations);
        let Plan { mut target, setup, rank, .. } = plan;
        let (nccl, outside) = take_others(job, rank.as_ref(), &mut target.device);
        let prediction = Prediction::new(job.profile(), lowered, setup, &target.device);
        observer(Stage::Replay);
        let memory = timings.time(Stage::Replay, || prediction.memory(&iterations, &self.detail));
        let search = self.detail.capacity;
        let decided = Decided { target, convolutions, rank, nccl, outside, later, search };
        Ok(Answer::new(job, decided, iterations, self.integrity, &prediction, memory, timings))
    }

    /// The requests that `job` is predicted to make, all of them, whatever iterations the estimate
    /// is about.
    ///
    /// # Errors
    /// If the allocator's settings do not go with the job's PyTorch release, or the job cannot be replayed with
    /// the requested number of ranks.
    pub fn predict<'j>(&self, job: &'j Job) -> Result<Prediction<'j>, EstimateError> {
        let plan = self.plan(job)?;
        let (_, lowered) = plan.lower(job);
        let mut device = plan.target.device;
        take_others(job, plan.rank.as_ref(), &mut device);
        Ok(Prediction::new(job.profile(), lowered, plan.setup, &device))
    }

    /// The predicted run of `job`, up to the end of the iterations that the estimate is about, as a
    /// memory snapshot ([`Prediction::snapshot`]).
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use xmem::{Device, Estimate, Job, ReadOptions, SnapshotEnd};
    ///
    /// let job = Job::from_path("trace.json.zst", &ReadOptions::default())?;
    /// let estimate = Estimate::builder(Device::custom(xmem::Bytes::gib(24))).build();
    /// let snapshot = estimate.snapshot(&job, SnapshotEnd::OutOfMemory)?;
    /// xmem::write_snapshot(&snapshot, std::fs::File::create("run.pickle")?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`job`](Estimate::job), and if the allocator has no segments to show.
    pub fn snapshot(&self, job: &Job, end: SnapshotEnd) -> Result<Snapshot, EstimateError> {
        let prediction = self.predict(job)?;
        Ok(prediction.snapshot(&self.chosen(job)?, end)?)
    }

    /// The predicted run of `job`, up to the end of the iterations that the estimate is about, event by event
    /// ([`Prediction::timeline`]).
    ///
    /// # Errors
    /// As [`job`](Estimate::job).
    pub fn timeline(&self, job: &Job, end: SnapshotEnd) -> Result<Timeline, EstimateError> {
        Ok(self.predict(job)?.timeline(&self.chosen(job)?, end))
    }

    /// The convolutions of a job whose plans matter: with the search for the least capacity, also those that do only where
    /// memory is shorter than on the device.
    ///
    /// # Errors
    /// As [`predict`](Estimate::predict).
    pub fn convolution_questions(
        &self,
        job: &Job,
    ) -> Result<Vec<ConvolutionQuestion>, EstimateError> {
        let plan = self.plan(job)?;
        Ok(xmem_orchestrator::convolution_questions(job.profile(), &plan.schedule_target(job)))
    }

    /// The peaks of `job` if it goes on with iterations of other lengths, in random orders: with the
    /// allocator's own options, and with expandable segments the other way.
    ///
    /// # Errors
    /// If the recording does not show how memory depends on the length, or the allocator's settings do not
    /// go with the job's PyTorch release.
    pub fn lengths(
        &self,
        job: &Job,
        settings: &LengthSettings,
    ) -> Result<LengthsAnswer, EstimateError> {
        let Plan { mut target, setup, rank, .. } = self.plan(job)?;
        take_others(job, rank.as_ref(), &mut target.device);
        let prediction = self.predict(job)?;
        let other = lengths::other_expandable(&setup).and_then(|conf| {
            let allocator = AllocatorSettings { conf: Some(conf), ..self.allocator.clone() };
            allocator.resolve_leniently(job.environment(), &target.device).ok()
        });
        let setups: Vec<AllocatorSetup> = [setup].into_iter().chain(other).collect();
        LengthsAnswer::new(job, target, &prediction, (settings, &setups), self.integrity)
    }

    /// The device for a job. A capacity alone is that of the GPU that the job was recorded on, if it was.
    fn device_of(&self, job: &Job) -> Device {
        let mut device = self.target.device.clone();
        let gpu = job.profile().gpu.as_ref().filter(|_| device.is_custom());
        if let Some((major, minor)) = gpu.and_then(|gpu| gpu.properties.compute_capability) {
            device.compute_capability = ComputeCapability { major, minor };
            "the recorded GPU's".clone_into(&mut device.sources.compute_capability);
        }
        device
    }

    /// Decides target and allocator for a job.
    fn plan(&self, job: &Job) -> Result<Plan, EstimateError> {
        let device = self.device_of(job);
        let mut setup = self.allocator.resolve_leniently(job.environment(), &device)?;
        tracing::debug!(
            kind = setup.kind.name(),
            torch = %setup.release,
            conf = setup.conf,
            "allocator"
        );
        let recorded = job.environment().cublas_workspace().and_then(parse_cublas_workspace_config);
        let resharding = match self.world_size {
            Some(ranks) => Some(Resharding::of(job.profile(), ranks)?),
            None => None,
        };
        check_completion(job.profile(), &self.target.completion)?;
        let rank = resharding.as_ref().map(|other| other.rank().clone());
        let target = Target {
            device,
            resharding,
            torch: setup.release,
            cublas_workspace: self.target.cublas_workspace.or(recorded),
            ..self.target.clone()
        };
        let convolutions = Arc::clone(&self.convolutions);
        let (target, convolutions) = match job.profile().recording() {
            Some(recording) => {
                script_settings::apply((target, convolutions), recording, &mut setup.notes)
            }
            None => (target, convolutions),
        };
        let rank = rank.or_else(|| job.facts().rank.clone());
        Ok(Plan { target, convolutions, setup, rank, search: self.detail.capacity })
    }

    /// The iterations the answer is about, checked against the trace.
    fn chosen(&self, job: &Job) -> Result<Range<IterationId>, EstimateError> {
        let found = IterationId::new(job.profile().iterations.len());
        match self.iterations {
            None => Ok(IterationId(0)..found),
            Some(asked) if asked.to() <= found => Ok(asked.from()..asked.to()),
            Some(asked) => Err(EstimateError::NoSuchIteration {
                from: asked.from().0,
                to: asked.to().0,
                found: found.0,
            }),
        }
    }
}

/// The source of the workspaces of a job that was recorded on a GPU, where none is asked.
const AS_RECORDED: &str = "as recorded";

/// Takes from what the device leaves to the allocator the memory that others have: NCCL, if the job uses it, and what the
/// program took from the device itself.
fn take_others(job: &Job, rank: Option<&Rank>, device: &mut Device) -> (Option<NcclMemory>, Bytes) {
    let profile = job.profile();
    let outside = profile.virtual_gpu().map_or(Bytes::ZERO, VirtualGpu::outside);
    device.context += outside;
    let variables = profile.recording().map_or(&[][..], |recording| &recording.environment);
    let memory =
        rank.and_then(|rank| NcclMemory::of(rank, profile.collectives(), variables, device));
    if let Some(memory) = memory {
        memory.take_from(device);
    }
    (memory, outside)
}

/// The decisions for one job.
struct Plan {
    target: Target,
    convolutions: Arc<dyn ConvolutionSource>,
    setup: AllocatorSetup,
    /// The place of the process in the job that is replayed.
    rank: Option<Rank>,
    search: CapacitySearch,
}

impl Plan {
    /// The target of the schedule. The search for the least capacity has that of a GPU without memory: a recorded job takes
    /// plans there that it does not need on the device itself.
    fn schedule_target(&self, job: &Job) -> Cow<'_, Target> {
        let mut target = Cow::Borrowed(&self.target);
        if self.search == CapacitySearch::Run && job.profile().gpu.is_some() {
            let device = self.target.device.clone().with_memory(Bytes::ZERO, "the least of all");
            target.to_mut().device = device;
        }
        target
    }

    /// Asks about the job's convolutions, and lowers the job with the answers.
    fn lower(&self, job: &Job) -> (ConvolutionAnswers, (Schedule, Diagnostics)) {
        let profile = job.profile();
        let target = self.schedule_target(job);
        let questions = xmem_orchestrator::convolution_questions(profile, &target);
        let answers = match profile.recording() {
            _ if profile.gpu.is_some() && questions.is_empty() => {
                ConvolutionAnswers::new(AS_RECORDED, [])
            }
            Some(recording) => {
                let recorded = script_settings::cudnn(recording);
                self.convolutions.answer_recorded(&self.target.device, &questions, &recorded)
            }
            None => self.convolutions.answer(&self.target.device, &questions),
        };
        let is_automatic = self.convolutions.is_automatic();
        let other = cudnn_release::other(&answers, is_automatic, profile.recording(), &self.setup);
        let answers = answers.with_other_release(other);
        let lowered = xmem_orchestrator::schedule(profile, &target, &answers);
        (answers, lowered)
    }

    /// Peaks of allocated and of reserved memory where work on the streams is complete later than recorded: the ends of
    /// the ranges with the model's durations, and when the host waits for it. None if the recording does not show it, or
    /// if nothing depends on it.
    fn later(
        &self,
        job: &Job,
        convolutions: &ConvolutionAnswers,
        iterations: &Range<IterationId>,
    ) -> Vec<(Bytes, Bytes)> {
        let profile = job.profile();
        let is_recorded = self.target.completion == StreamCompletion::AtOnce
            && self.target.resharding.is_none()
            && depends_on_completion(profile);
        if !is_recorded {
            return Vec::new();
        }
        let range = |completion: StreamCompletion| {
            let mut target = Target { completion, ..self.target.clone() };
            take_others(job, self.rank.as_ref(), &mut target.device);
            let lowered = xmem_orchestrator::schedule(profile, &target, convolutions);
            let setup = self.setup.clone();
            let prediction = Prediction::new(profile, lowered, setup, &target.device);
            prediction.memory(iterations, &Detail::default()).range
        };
        let model = CompletionModel::of(&self.target.device);
        [StreamCompletion::Modeled(Box::new(model)), StreamCompletion::HostWaits]
            .map(range)
            .iter()
            .flat_map(|range| {
                let (allocated, reserved) = (range.allocated, range.reserved);
                [(allocated.low, reserved.low), (allocated.high, reserved.high)]
            })
            .collect()
    }
}

impl EstimateBuilder {
    /// The PyTorch version that will run on the GPU. Without it, it is the one that the trace says
    /// it was recorded with, and else the latest that recordings were made of.
    pub fn torch(mut self, version: TorchVersion) -> Self {
        self.0.target.torch = version;
        self.0.allocator.release = Some(version);
        self
    }

    /// Sets how the optimizers run on the GPU. Without it, it is what the trace says that the
    /// script requested, and else PyTorch's default.
    pub fn optimizer(mut self, optimizer: OptimizerImpl) -> Self {
        self.0.target.optimizer = Some(optimizer);
        self
    }

    /// Sets when work on the streams of a recorded GPU is complete, on which depends when memory that several streams
    /// used can be used again. Without it, at once. Recordings of `xmem profile --virtual-gpu` alone show what the
    /// others need.
    pub fn stream_completion(mut self, completion: StreamCompletion) -> Self {
        self.0.target.completion = completion;
        self
    }

    /// The model of durations for this device, to be changed and given to [`Self::stream_completion`].
    #[must_use]
    pub fn completion_model(&self) -> CompletionModel {
        CompletionModel::of(&self.0.target.device)
    }

    /// The source of convolution plans. Without it, it is that of the command line
    /// ([`AutomaticSource`]): `XMEM_CUDNN`, else a cuDNN library that is found, else the
    /// [`FittedModel`](crate::FittedModel).
    pub fn convolutions(mut self, source: Arc<dyn ConvolutionSource>) -> Self {
        self.0.convolutions = source;
        self
    }

    /// The size of cuBLAS's workspaces. Without it, it is what the trace says
    /// (`CUBLAS_WORKSPACE_CONFIG`), and else PyTorch's default for the device.
    pub fn cublas_workspace(mut self, size: Bytes) -> Self {
        self.0.target.cublas_workspace = Some(size);
        self
    }

    /// Sets whether the script lets PyTorch try all plans of convolutions
    /// (`torch.backends.cudnn.benchmark`). Without it, it is what the trace says, and else off.
    pub fn cudnn_benchmark(mut self, benchmark: CudnnBenchmark) -> Self {
        self.0.target.cudnn_benchmark = benchmark;
        self
    }

    /// Clears gradients at another place than recorded (a what-if).
    pub fn zero_grad(mut self, place: ZeroGradPlace) -> Self {
        self.0.target.zero_grad = Some(place);
        self
    }

    /// Keeps or drops the gradients' memory in `zero_grad` (a what-if).
    pub fn gradients(mut self, cleared: ClearedGradients) -> Self {
        self.0.target.set_to_none = cleared == ClearedGradients::Dropped;
        self
    }

    /// Replays a rank of a distributed job as one of a job of another number of ranks (a what-if): what FSDP
    /// shards has other sizes. Only recordings of `xmem profile` say how parameters are sharded.
    pub fn world_size(mut self, ranks: u32) -> Self {
        self.0.world_size = Some(ranks);
        self
    }

    /// Switches rules of the lowering off, by name (see [`rules`](crate::rules)).
    pub fn without_rules(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.0.target.disabled = names.into_iter().collect::<BTreeSet<_>>();
        self
    }

    /// The allocator and its options. A release in them is the PyTorch version.
    pub fn allocator(mut self, settings: AllocatorSettings) -> Self {
        let release = settings.release.or(self.0.allocator.release);
        self.0.allocator = AllocatorSettings { release, ..settings };
        self.0.target.torch = release.unwrap_or(self.0.target.torch);
        self
    }

    /// Restricts the answer to some iterations.
    pub fn iterations(mut self, iterations: Iterations) -> Self {
        self.0.iterations = Some(iterations);
        self
    }

    /// Sets the number of largest blocks that the answer lists (10).
    pub fn largest(mut self, count: usize) -> Self {
        self.0.detail.largest = count;
        self
    }

    /// At most how many points the curve has (240).
    pub fn curve_points(mut self, points: usize) -> Self {
        self.0.detail.curve_points = points;
        self
    }

    /// Switches the search for the smallest sufficient capacity. Without it, it is run if the job does not certainly fit.
    pub fn capacity_search(mut self, search: CapacitySearch) -> Self {
        self.0.detail.capacity = search;
        self
    }

    /// Sets how the condition of a recording counts for the verdict. Without it, a damaged recording
    /// withholds the verdict.
    pub fn integrity(mut self, policy: IntegrityPolicy) -> Self {
        self.0.integrity = policy;
        self
    }

    /// Sets how traces are read.
    pub fn read_options(mut self, options: ReadOptions) -> Self {
        self.0.read = options;
        self
    }

    /// The estimate.
    #[must_use]
    pub fn build(self) -> Estimate {
        self.0
    }
}
