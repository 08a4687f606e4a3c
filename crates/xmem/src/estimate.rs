//! The builder, and the way from a job to an answer.

use crate::answer::Answer;
use crate::error::EstimateError;
use crate::job::Job;
use crate::moments::Moments;
use crate::outcome::{Played, Scene};
use crate::selection::Iterations;
use crate::timings::Stage;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use xmem_orchestrator::{OptimizerImpl, Target, ZeroGradPlace};
use xmem_profiles::Device;
use xmem_simulator::{AllocatorConfig, DeviceConfig, OutOfMemory, Replay};
use xmem_trace::ReadOptions;
use xmem_types::{IterationId, Request, TorchVersion};

/// What is to be estimated: a device, a PyTorch version, what-ifs, and how much the answer tells.
///
/// One estimate serves any number of jobs.
#[derive(Clone, Debug)]
pub struct Estimate {
    target: Target,
    pub(crate) allocator: AllocatorConfig,
    read: ReadOptions,
    iterations: Option<Iterations>,
    pub(crate) largest: usize,
    pub(crate) curve_points: usize,
    capacity: CapacitySearch,
}

/// Whether the smallest sufficient capacity is looked for. It costs a few dozen replays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CapacitySearch {
    /// Leave it out.
    #[default]
    Skip,
    /// Find it.
    Run,
}

/// What becomes of gradients when they are cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClearedGradients {
    /// `set_to_none=True`, PyTorch's default since 2.0: their memory is given back.
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
            allocator: AllocatorConfig::default(),
            read: ReadOptions::default(),
            iterations: None,
            largest: 10,
            curve_points: 240,
            capacity: CapacitySearch::Skip,
        })
    }

    /// Device, PyTorch version and what-ifs.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Reads a trace file (plain, gzip or zstd; `-` is standard input) and estimates it.
    ///
    /// # Errors
    /// If the file cannot be read or is not a trace, or lacks the selected iterations.
    pub fn path(&self, path: impl AsRef<Path>) -> Result<Answer, EstimateError> {
        self.path_observed(path.as_ref(), &|_| {})
    }

    /// Like [`path`](Estimate::path), and tells `observer` when a stage begins.
    ///
    /// # Errors
    /// As [`path`](Estimate::path).
    pub fn path_observed(
        &self,
        path: &Path,
        observer: &dyn Fn(Stage),
    ) -> Result<Answer, EstimateError> {
        self.answer_observed(&Job::observed(path, &self.read, observer)?, observer)
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
    /// If the job lacks the selected iterations.
    pub fn job(&self, job: &Job) -> Result<Answer, EstimateError> {
        self.answer_observed(job, &|_| {})
    }

    fn answer_observed(
        &self,
        job: &Job,
        observer: &dyn Fn(Stage),
    ) -> Result<Answer, EstimateError> {
        let chosen = self.chosen(job)?;
        let mut timings = job.timings().clone();
        let mut notes = job.diagnostics().clone();
        observer(Stage::Lower);
        let (schedule, lowering) =
            timings.time(Stage::Lower, || xmem_orchestrator::schedule(job.profile(), &self.target));
        notes.extend(lowering);
        observer(Stage::Replay);
        let scene = Scene::new(job.profile(), &schedule, chosen);
        let device = self.device_config();
        let played = timings.time(Stage::Replay, || self.play(&scene, &device));
        notes.extend(played.replay.diagnostics.clone());
        Ok(scene.answer(&played, self, &notes, job.facts().clone(), timings))
    }

    fn play(&self, scene: &Scene<'_>, device: &DeviceConfig) -> Played {
        let requests = scene.requests();
        let limited = xmem_simulator::replay(requests, &self.allocator, device);
        let ample = DeviceConfig { capacity: None, ..*device };
        let replay = self.with_ample_figures(limited, requests, &ample);
        let moments = if scene.within.start == 0 {
            Moments::of_replay(&replay)
        } else {
            let device = if replay.fits() { device } else { &ample };
            let curve = &replay.curve;
            Moments::within(&scene.within, curve, requests, &self.allocator, device)
        };
        let min_capacity = (self.capacity == CapacitySearch::Run).then(|| {
            xmem_simulator::min_capacity(requests, &self.allocator, device) + device.taken
        });
        Played { replay, moments, min_capacity }
    }

    /// Where the job does not fit, its figures are those of a device with room for all; what is
    /// left of the limited replay is where and how memory ran out.
    fn with_ample_figures(
        &self,
        limited: Replay,
        requests: &[Request],
        ample: &DeviceConfig,
    ) -> Replay {
        let Some(oom) = limited.oom else { return limited };
        let mut replay = xmem_simulator::replay(requests, &self.allocator, ample);
        replay.stats.num_ooms = limited.stats.num_ooms;
        replay.stats.num_alloc_retries = limited.stats.num_alloc_retries;
        replay.oom = Some(OutOfMemory { needed: replay.unlimited.reserved, ..oom });
        replay
    }

    pub(crate) fn device_config(&self) -> DeviceConfig {
        let device = &self.target.device;
        DeviceConfig {
            capacity: Some(device.memory),
            taken: device.context,
            ..DeviceConfig::default()
        }
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

impl EstimateBuilder {
    /// The PyTorch version that will run on the GPU.
    pub fn torch(mut self, version: TorchVersion) -> Self {
        self.0.target.torch = version;
        self
    }

    /// How the optimizer runs on the GPU.
    pub fn optimizer(mut self, optimizer: OptimizerImpl) -> Self {
        self.0.target.optimizer = optimizer;
        self
    }

    /// What if gradients were cleared elsewhere?
    pub fn zero_grad(mut self, place: ZeroGradPlace) -> Self {
        self.0.target.zero_grad = Some(place);
        self
    }

    /// What if `zero_grad` kept (or dropped) the gradients' memory?
    pub fn gradients(mut self, cleared: ClearedGradients) -> Self {
        self.0.target.set_to_none = cleared == ClearedGradients::Dropped;
        self
    }

    /// Switches rules of the lowering off, by name (see [`rules`](crate::rules)).
    pub fn without_rules(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.0.target.disabled = names.into_iter().collect::<BTreeSet<_>>();
        self
    }

    /// The allocator's options, as `PYTORCH_CUDA_ALLOC_CONF` sets them.
    pub fn allocator(mut self, config: AllocatorConfig) -> Self {
        self.0.allocator = config;
        self
    }

    /// Restricts the answer to some iterations.
    pub fn iterations(mut self, iterations: Iterations) -> Self {
        self.0.iterations = Some(iterations);
        self
    }

    /// How many of the largest blocks the answer lists (10).
    pub fn largest(mut self, count: usize) -> Self {
        self.0.largest = count;
        self
    }

    /// At most how many points the curve has (240).
    pub fn curve_points(mut self, points: usize) -> Self {
        self.0.curve_points = points;
        self
    }

    /// Whether to look for the smallest sufficient capacity.
    pub fn capacity_search(mut self, search: CapacitySearch) -> Self {
        self.0.capacity = search;
        self
    }

    /// How traces are read.
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
