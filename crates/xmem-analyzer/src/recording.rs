//! The notes of `xmem profile` in a trace beside the events: the key `xmem_recording`, schema
//! `xmem.recording.1` (docs/schema). Everything in it is optional.

mod activity;
mod allocator;
mod cudnn;
mod rank;
mod read;
mod rest;
mod sharding;
mod strategy;
mod tried;
mod unseen;
mod virtual_gpu;

pub use activity::{ActivityEntry, ActivityKind, CollectiveKind, StreamActivity};
pub use allocator::{AllocatorHistory, DeviceHistory, HistoryAction, HistoryEntry, PoolSighting};
pub(crate) use cudnn::read as read_convolutions;
pub use cudnn::{CudnnAnswers, CudnnLibrary, KEY as CONVOLUTIONS_KEY};
pub use rank::Rank;
pub use read::KEY;
pub(crate) use read::read;
pub(crate) use rest::{KEY as REST_KEY, RestOfDevice, read as read_rest};
pub use rest::{LoadedBatches, RestEnd, ScriptRest};
pub use sharding::{DividedExtent, ParameterGroup, Sharding, SharingKind};
pub use strategy::Strategy;
pub(crate) use tried::read as read_measures;
pub use tried::{KEY as MEASURES_KEY, LargestValue, TriedMeasure, TriedMeasures};
pub use unseen::{UnseenEvent, UnseenKind};
pub use virtual_gpu::VirtualGpu;

use xmem_types::{Addr, Bytes};

/// The unit of iterations that end with a step of each optimizer.
pub(crate) const BY_STEPS: &str = "optimizer steps";

/// The facts of a recording that the events do not show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Version of the recorder.
    pub recorder: Option<String>,
    /// `torch.__version__`.
    pub torch: Option<String>,
    /// Version of Python.
    pub python: Option<String>,
    /// True if Python calls were recorded.
    pub stacks: Option<bool>,
    /// Key of the device that the script was recorded for.
    pub reported_device: Option<String>,
    /// Environment variables that matter on a GPU, those that were set.
    pub environment: Vec<(String, String)>,
    /// Switches of `torch.backends` (`cudnn.benchmark`, `flash_sdp`).
    pub backends: Vec<(String, bool)>,
    /// `torch.backends.cudnn.benchmark_limit`; 0 is no limit.
    pub cudnn_benchmark_limit: Option<u32>,
    /// The functions and modules that ran and that the script compiles (`torch.compile`), which the recorder ran
    /// eagerly.
    pub compiled_eagerly: Vec<String>,
    /// The cuDNN library of the recorded environment.
    pub cudnn: Option<CudnnLibrary>,
    /// The answers of cuDNN that were kept with the recording, at most one entry for each device.
    pub cudnn_answers: Vec<CudnnAnswers>,
    /// What `xmem fit` found out about the job with changes, if it kept that with the recording.
    pub tried: Option<TriedMeasures>,
    /// `torch.cuda.set_per_process_memory_fraction`.
    pub memory_fraction: Option<f64>,
    /// The end of the recording.
    pub ended: Option<Ended>,
    /// The unit counted as an iteration, and the number recorded.
    pub iterations: Option<IterationCount>,
    /// False if the script has put nothing on the GPU.
    pub uses_gpu: Option<bool>,
    /// The models that were trained or called.
    pub models: Vec<Model>,
    /// Parameters and buffers of the models.
    pub tensors: Vec<NamedTensor>,
    /// The optimizers, in order of creation.
    pub optimizers: Vec<Optimizer>,
    /// Types that `autocast("cuda")` was called with, by name.
    pub autocast: Vec<String>,
    /// True if autocast cast what it casts on CUDA, and not what it casts on the CPU.
    pub cuda_autocast_lists: bool,
    /// True if autocast's float16 was computed in bfloat16.
    pub float16_as_bfloat16: bool,
    /// True if a `GradScaler` was used.
    pub grad_scaler: Option<bool>,
    /// Samples in a batch.
    pub batch_size: Option<u64>,
    /// Calls that were redirected from CUDA to the CPU, with their number.
    pub redirected: Vec<(String, u64)>,
    /// What CUDA's caching allocator did, if the job was recorded on a virtual GPU.
    pub allocator_history: Option<AllocatorHistory>,
    /// What follows the recorded iterations; none if the script was ended after them.
    pub rest: Option<ScriptRest>,
    /// What the source of the script says that it will do, and was not seen in the recorded iterations.
    pub unseen: Vec<UnseenEvent>,
    /// Batches up to the last recorded iteration.
    pub batches: LoadedBatches,
    /// What a virtual GPU assumed, if the job was recorded on one.
    pub virtual_gpu: Option<VirtualGpu>,
    /// The place of the process among those of a distributed job.
    pub rank: Option<Rank>,
    /// How parameters are divided among the ranks.
    pub sharding: Option<Sharding>,
    /// The strategies by which the job is distributed; empty where there are none, or the recorder did not note them.
    pub strategies: Vec<Strategy>,
    /// Messages of the recorder to the user.
    pub notes: Vec<String>,
    /// The graph of a model that was acted instead of a script that was run; none for a recording.
    pub graph: Option<GraphSource>,
}

impl Recording {
    /// Returns whether an option of the allocator makes segments larger than PyTorch's default ones.
    #[must_use]
    pub(crate) fn has_larger_segments(&self) -> bool {
        let settings =
            self.allocator_history.as_ref().and_then(|history| history.settings.as_deref());
        let variables = self.environment.iter().map(|(_, value)| value.as_str());
        variables.chain(settings).any(|text| text.contains("large_segment_size_mb"))
    }

    /// Returns whether the history of the allocator is missing without a word: the recorder notes why it has none on a
    /// virtual GPU. PyTorch has histories since 2.1 (torch/csrc/cuda/Module.cpp, `_cuda_record_memory_history`).
    #[must_use]
    pub(crate) fn has_lost_history(&self) -> bool {
        let explains = |note: &String| note.contains("the history of the allocator");
        let is_old = self.torch.as_deref().is_some_and(|version| version.starts_with("2.0."));
        self.virtual_gpu.is_some()
            && self.allocator_history.is_none()
            && !is_old
            && !self.notes.iter().any(explains)
    }

    /// Returns whether all requested iterations were recorded, as far as the recording says.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ended.as_ref().is_none_or(|ended| ended.reason == EndReason::Complete)
    }

    /// Adds what follows the recorded iterations.
    pub(crate) fn add_rest(&mut self, rest: Option<ScriptRest>) {
        self.rest = rest;
        let pinned = self.rest.as_ref().and_then(|rest| rest.pinned);
        if let Some(gpu) = &mut self.virtual_gpu {
            gpu.pinned = gpu.pinned.max(pinned);
        }
        let limits = self.rest.as_mut().and_then(|rest| rest.limits.take());
        if let Some((gpu, limits)) = self.virtual_gpu.as_mut().zip(limits) {
            gpu.extend_to(limits);
        }
    }

    /// A switch of `torch.backends`; none where it was not recorded.
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<bool> {
        self.backends.iter().find(|(known, _)| known == name).map(|(_, on)| *on)
    }
}

/// The end of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// The reason.
    pub reason: EndReason,
    /// The exception, signal or exit code.
    pub detail: Option<String>,
    /// Bytes that the host's allocator could not provide, if that ended it.
    pub needed: Option<Bytes>,
}

/// A graph in place of a recording, and where it did not say enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphSource {
    /// Operators without a definition: their results count, and one gradient for each argument.
    pub unknown_operators: Vec<String>,
    /// Operators whose results have other sizes than the graph says.
    pub different_sizes: Vec<String>,
    /// Functions with a backward of their own, of which the graph has the operators of forward.
    pub autograd_functions: Vec<String>,
    /// What was assumed where the file of the graph does not say what PyTorch does, a sentence each.
    pub assumptions: Vec<String>,
    /// Operators whose results have sizes that follow from values, with the most that these can be, which is taken.
    pub bounded_sizes: Vec<String>,
}

/// The reason why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// All requested iterations are recorded.
    Complete,
    /// The script came to its end before.
    ScriptEnd,
    /// The script called `sys.exit`.
    Exit,
    /// The script raised.
    Exception,
    /// A signal ended the script.
    Signal,
    /// It took too long.
    Timeout,
    /// It took too much memory.
    Memory,
    /// A reason that a later recorder gives.
    Other,
}

impl EndReason {
    /// The name in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ScriptEnd => "script_end",
            Self::Exit => "exit",
            Self::Exception => "exception",
            Self::Signal => "signal",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Other => "other",
        }
    }
}

/// Iterations as the recorder counted them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IterationCount {
    /// `optimizer steps`, `forward calls`, `backward passes` or `marked iterations`.
    pub by: String,
    /// Their number.
    pub count: u64,
    /// How many were to be recorded in full; earlier recordings do not say.
    pub requested: Option<u64>,
    /// Resident memory of the recording process at the end of each, as far as it was noted.
    pub resident: Vec<Bytes>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// Its class, with the module it is defined in.
    pub class: String,
    /// `model.training`.
    pub training: Option<bool>,
    /// The number of its modules, itself included.
    pub modules: usize,
}

/// Memory that tensors share: where it lies in the recording process, and how much it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Address, as in the trace's memory events.
    pub address: Addr,
    /// Size.
    pub bytes: Bytes,
}

/// A parameter or a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedTensor {
    /// `layer1.0.conv1.weight`.
    pub name: String,
    /// Row of [`Recording::models`].
    pub model: Option<usize>,
    /// Parameter or buffer.
    pub kind: TensorKind,
    /// True if it is trained.
    pub requires_grad: Option<bool>,
    /// Its memory at the end of the recording.
    pub storage: Storage,
    /// The memory of its gradient then, if it has one.
    pub gradient: Option<Storage>,
}

/// The kind of a module's tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensorKind {
    /// `nn.Parameter`.
    Parameter,
    /// A registered buffer.
    Buffer,
}

/// An optimizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Optimizer {
    /// Its class, with the module it is defined in (`torch.optim.adamw.AdamW`).
    pub class: String,
    /// The implementation that the script requested.
    pub implementation: Implementation,
    /// True if its scalars live on the GPU so that graphs can capture its step.
    pub capturable: bool,
    /// True if autograd follows its step.
    pub differentiable: bool,
    /// The number of tensors it updates.
    pub tensors: u64,
    /// Steps that were recorded.
    pub steps: Option<u64>,
    /// Its state at the end of the recording.
    pub state: Vec<StateTensor>,
}

impl Optimizer {
    /// The class without its module (`AdamW`).
    #[must_use]
    pub fn name(&self) -> &str {
        self.class.rsplit('.').next().unwrap_or(&self.class)
    }
}

/// The implementation of an optimizer that a script requests (`foreach`, `fused`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Implementation {
    /// PyTorch decides.
    #[default]
    Default,
    /// Over whole lists of parameters.
    Foreach,
    /// In one kernel.
    Fused,
    /// Parameter by parameter.
    ForLoop,
}

impl Implementation {
    /// The name in the recording and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Foreach => "foreach",
            Self::Fused => "fused",
            Self::ForLoop => "for-loop",
        }
    }
}

/// A tensor of an optimizer's state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateTensor {
    /// Its key in the state (`exp_avg`, `step`).
    pub name: String,
    /// Its memory at the end of the recording.
    pub storage: Storage,
}
