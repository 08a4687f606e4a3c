//! The builder, and the way from a job to an answer.

use crate::answer::Answer;
use crate::error::EstimateError;
use crate::expandable;
use crate::iterations::Iterations;
use crate::job::Job;
use crate::predicted::PredictedJob;
use crate::script_settings;
use crate::timings::Stage;
use crate::verdict::IntegrityPolicy;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use xmem_analyzer::recording::Rank;
use xmem_convolutions::{ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource};
use xmem_devices::{ComputeCapability, Device};
use xmem_orchestrator::{
    ChosenWhatIf, CompletionModel, CudnnBenchmark, OptimizerImpl, Schedule, StreamCompletion,
    Target, ZeroGradPlace, check_completion, parse_cublas_workspace_config,
};
use xmem_predict::{
    AllocatorError, AllocatorSettings, AllocatorSetup, CapacitySearch, Detail, DeviceBudget,
    Prediction, other_cudnn_release,
};
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
    to_the_end: bool,
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
            convolutions: default_source(),
            allocator: AllocatorSettings::default(),
            read: ReadOptions::default(),
            iterations: None,
            detail: Detail::default(),
            integrity: IntegrityPolicy::default(),
            to_the_end: false,
        })
    }

    /// The same estimate for another device.
    #[must_use]
    pub fn on(&self, device: Device) -> Self {
        Self { target: Target { device, ..self.target.clone() }, ..self.clone() }
    }

    /// The same estimate with `expandable_segments:True` beside the options of `setup`, which cost nothing; none if they are on,
    /// or are no option of the allocator.
    #[must_use]
    pub fn with_expandable_segments(&self, setup: &AllocatorSetup) -> Option<Self> {
        let conf = expandable::conf(setup, true).filter(|_| !setup.has_expandable_segments())?;
        let allocator = AllocatorSettings { conf: Some(conf), ..self.allocator.clone() };
        Some(Self { allocator, ..self.clone() })
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
        Ok(self.predict_observed(job, observer)?.answer_observed(observer))
    }

    /// The job as it is predicted to run, from which all that is asked about it follows: the answer, the run event by event, a
    /// memory snapshot, and peaks at other lengths.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use xmem::predict::SnapshotEnd;
    /// use xmem::{Device, Estimate, Job, ReadOptions};
    ///
    /// let job = Job::from_path("trace.json.zst", &ReadOptions::default())?;
    /// let estimate = Estimate::builder(Device::custom(xmem::Bytes::gib(24))).build();
    /// let predicted = estimate.predict(&job)?;
    /// println!("{}", predicted.answer().memory.peak.reserved);
    /// let snapshot = predicted.snapshot(SnapshotEnd::OutOfMemory)?;
    /// xmem::snapshot::write(&snapshot, std::fs::File::create("run.pickle")?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the job lacks the selected iterations, the allocator's settings do not go with the job's PyTorch release, or the
    /// job cannot be replayed with the requested number of ranks.
    pub fn predict<'j>(&self, job: &'j Job) -> Result<PredictedJob<'j>, EstimateError> {
        self.predict_observed(job, &|_| {})
    }

    /// Like [`predict`](Estimate::predict), and calls `observer` when a stage begins.
    ///
    /// # Errors
    /// As [`predict`](Estimate::predict).
    pub fn predict_observed<'j>(
        &self,
        job: &'j Job,
        observer: &dyn Fn(Stage),
    ) -> Result<PredictedJob<'j>, EstimateError> {
        let mut predicted = self.predict_gpu(job, observer)?;
        let others = job.others().iter().map(|other| self.predict_gpu(other, &|_| {}));
        predicted.others = others.collect::<Result<_, _>>()?;
        Ok(predicted)
    }

    /// The job on the GPU whose memory was analyzed, whatever others there are.
    fn predict_gpu<'j>(
        &self,
        job: &'j Job,
        observer: &dyn Fn(Stage),
    ) -> Result<PredictedJob<'j>, EstimateError> {
        let iterations = self.chosen(job)?;
        let plan = self.plan(job)?;
        let mut timings = job.timings().clone();
        observer(Stage::Lower);
        let (convolutions, lowered) = timings.time(Stage::Lower, || plan.lower(job));
        let Plan { mut target, setup, rank, .. } = plan;
        let budget = DeviceBudget::new(target.device, job.profile(), rank.as_ref());
        target.device = budget.device().clone();
        let prediction = Prediction::new(job.profile(), lowered, setup, &target.device);
        Ok(PredictedJob {
            job,
            prediction,
            target,
            budget,
            convolutions,
            rank,
            iterations,
            detail: self.detail,
            integrity: self.integrity,
            to_the_end: self.to_the_end,
            allocator: self.allocator.clone(),
            timings,
            others: Vec::new(),
        })
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
        let target = Target { device, torch: setup.release, ..self.target.clone() };
        let target = target.with_what_ifs(job.profile())?;
        check_completion(job.profile(), &target.completion)?;
        let rank = target.resharding.as_ref().map(|other| other.rank().clone());
        let cublas_workspace = target.cublas_workspace.or(recorded);
        let target = Target { cublas_workspace, ..target };
        let (target, convolutions) = match job.profile().recording() {
            Some(recording) => (
                target.with_requests(recording),
                script_settings::source(&self.convolutions, recording, &mut setup.notes),
            ),
            None => (target, Arc::clone(&self.convolutions)),
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

/// The source of convolution plans where none is chosen: the command line's.
#[cfg(not(target_family = "wasm"))]
fn default_source() -> Arc<dyn ConvolutionSource> {
    Arc::new(xmem_cudnn::AutomaticSource::from_environment())
}

/// The same where no library can be loaded.
#[cfg(target_family = "wasm")]
fn default_source() -> Arc<dyn ConvolutionSource> {
    Arc::new(xmem_convolutions::FittedModel)
}

/// The source of the workspaces of a job that was recorded on a GPU, where none is asked.
const AS_RECORDED: &str = "as recorded";

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
        let recording = profile.recording();
        let other = other_cudnn_release(&answers, is_automatic, recording, &self.setup);
        let answers = answers.with_other_release(other);
        let lowered = xmem_orchestrator::schedule(profile, &target, &answers);
        (answers, lowered)
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
    pub fn optimizer(self, optimizer: OptimizerImpl) -> Self {
        self.in_place_of("optimizer-impl", |target| target.optimizer = Some(optimizer))
    }

    /// Sets when work on the streams of a recorded GPU is complete, on which depends when memory that several streams
    /// used can be used again. Without it, at once. Recordings of `xmem profile --virtual-gpu` alone show what the
    /// others need.
    pub fn stream_completion(self, completion: StreamCompletion) -> Self {
        self.in_place_of("collectives", |target| target.completion = completion)
    }

    /// The model of durations for this device, to be changed and given to [`Self::stream_completion`].
    #[must_use]
    pub fn completion_model(&self) -> CompletionModel {
        CompletionModel::of(&self.0.target.device)
    }

    /// The source of convolution plans. Without it, it is that of the command line
    /// (`AutomaticSource` of xmem-cudnn): `XMEM_CUDNN`, else a cuDNN library that is found, else the
    /// [`FittedModel`](xmem_convolutions::FittedModel).
    pub fn convolutions(mut self, source: Arc<dyn ConvolutionSource>) -> Self {
        self.0.convolutions = source;
        self
    }

    /// The size of cuBLAS's workspaces. Without it, it is what the trace says
    /// (`CUBLAS_WORKSPACE_CONFIG`), and else PyTorch's default for the device.
    pub fn cublas_workspace(self, size: Bytes) -> Self {
        self.in_place_of("cublas-workspace", |target| target.cublas_workspace = Some(size))
    }

    /// Sets whether the script lets PyTorch try all plans of convolutions
    /// (`torch.backends.cudnn.benchmark`). Without it, it is what the trace says, and else off.
    pub fn cudnn_benchmark(mut self, benchmark: CudnnBenchmark) -> Self {
        self.0.target.cudnn_benchmark = benchmark;
        self
    }

    /// Clears gradients at another place than recorded (a what-if).
    pub fn zero_grad(self, place: ZeroGradPlace) -> Self {
        self.in_place_of("zero-grad", |target| target.zero_grad = Some(place))
    }

    /// Keeps or drops the gradients' memory in `zero_grad` (a what-if).
    pub fn gradients(self, cleared: ClearedGradients) -> Self {
        let frees = cleared == ClearedGradients::Dropped;
        self.in_place_of("set-to-none", |target| target.set_to_none = frees)
    }

    /// Changes the job (a what-if). Of several of one name, the last one counts.
    pub fn what_if(mut self, what_if: ChosenWhatIf) -> Self {
        self.0.target.add(what_if);
        self
    }

    /// Sets what a what-if of this name sets for each job, which is removed if it was chosen before: the last call counts.
    fn in_place_of(mut self, what_if: &str, set: impl FnOnce(&mut Target)) -> Self {
        self.0.target.what_ifs.retain(|chosen| chosen.name() != what_if);
        set(&mut self.0.target);
        self
    }

    /// Switches rules of the lowering off, by name (see [`rules`](xmem_orchestrator::rules)).
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

    /// Withholds the verdict that a job fits where its script was not recorded to its end, or until nothing new followed.
    pub fn require_coverage(mut self, is_required: bool) -> Self {
        self.0.to_the_end = is_required;
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
