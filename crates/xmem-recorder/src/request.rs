//! The request: a command, and the limits to its recording.

use crate::assumptions::{Assumptions, DevicePeaks};
use crate::measures::Measure;
use crate::rank::LoneRank;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use xmem_devices::Device;
use xmem_overlay::Writable;
use xmem_types::Bytes;
use xmem_virtual_gpu::{Capacity, Environments};

/// Iterations that are recorded, if nothing else is said.
const DEFAULT_STEPS: NonZeroU32 = NonZeroU32::new(3).expect("not zero");

/// A command to record.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program, and its arguments.
    pub command: (OsString, Vec<OsString>),
    /// What the command is run for.
    pub purpose: Purpose,
    /// The file that the trace goes to: compressed if it ends in `.zst` or `.gz`, else plain JSON. The archive, for a graph.
    pub output: PathBuf,
    /// Iterations after which the script is ended; for a graph, the step of the iteration that it is taken of.
    pub steps: NonZeroU32,
    /// How long the script goes on after them on a virtual GPU, without the profiler.
    pub rest: Option<Duration>,
    /// The choice of Python stacks.
    pub stacks: Stacks,
    /// The GPU that the script sees.
    pub device: Device,
    /// The number of GPUs that the script sees, from 1 to 64.
    pub gpus: NonZeroU32,
    /// The memory that a process can allocate on a virtual GPU; without a limit, a job that does not fit is recorded
    /// whole.
    pub capacity: Capacity,
    /// The process of a distributed job that is recorded alone; none if all run.
    pub rank: Option<LoneRank>,
    /// What stands for the GPU.
    pub engine: Engine,
    /// The type in which the CPU computes float16.
    pub float16: Float16,
    /// The file for PyTorch's own memory snapshot with call stacks, which a virtual GPU writes.
    pub snapshot: Option<PathBuf>,
    /// The files of weights that the script loads.
    pub weights: Weights,
    /// Assumptions about values that a virtual GPU does not compute.
    pub assume: Assumptions,
    /// The peaks of the same command under the lowest shares of `assume`, for the metadata.
    pub other_peaks: Option<DevicePeaks>,
    /// How far the host runs ahead of a virtual GPU.
    pub timing: Timing,
    /// Batches of several lengths instead of the script's own.
    pub vary: Option<VaryingBatches>,
    /// The files that the command writes to; what it writes elsewhere is kept out of them.
    pub writable: Writable,
    /// The folder of a static memory plan that the job's allocator follows; none for PyTorch's own.
    pub plan: Option<PlanFolder>,
    /// What is changed in the job, to lower its memory.
    pub measures: Vec<Measure>,
    /// Further variables of the command's environment.
    pub variables: Vec<(String, String)>,
    /// The file for what the command prints, which reads nothing then; none if both are this process's.
    pub printed: Option<PathBuf>,
    /// How writes are kept out.
    pub overlay: xmem_overlay::Choice,
    /// A program that runs the command in a mount namespace (`xmem_overlay::ENTER`); none to do without.
    pub helper: Option<PathBuf>,
    /// The time limit of the command.
    pub timeout: Option<Duration>,
    /// The limit to the resident memory of the command's processes; without one, that of the host.
    pub memory: Option<Bytes>,
    /// The limits to single steps.
    pub timeouts: Timeouts,
    /// The Python environments that were examined for a virtual GPU: copies of a request examine each once.
    pub environments: Environments,
}

impl Request {
    /// A request without further wishes: three iterations on a virtual GPU of that kind, with stacks, whose memory has no limit.
    /// What the command writes is kept out of the files of the user.
    #[must_use]
    pub fn new(command: (OsString, Vec<OsString>), output: PathBuf, device: Device) -> Self {
        Self {
            command,
            purpose: Purpose::Record,
            output,
            steps: DEFAULT_STEPS,
            rest: None,
            stacks: Stacks::Recorded,
            device,
            gpus: NonZeroU32::MIN,
            capacity: Capacity::Unlimited,
            rank: None,
            engine: Engine::VirtualGpu,
            float16: Float16::default(),
            snapshot: None,
            weights: Weights::Present,
            assume: Assumptions::default(),
            other_peaks: None,
            timing: Timing::AtOnce(None),
            vary: None,
            plan: None,
            measures: Vec::new(),
            variables: Vec::new(),
            printed: None,
            writable: Writable::Paths(Vec::new()),
            overlay: xmem_overlay::Choice::default(),
            helper: None,
            timeout: None,
            memory: None,
            timeouts: Timeouts::default(),
            environments: Environments::default(),
        }
    }
}

/// A folder with an allocator that follows a static memory plan: its library, and `plan.txt`, if there is a plan before the
/// job runs. The hook writes what it observed, and counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFolder {
    /// The folder.
    pub path: PathBuf,
    /// Look for memory that is given out twice.
    pub debug: bool,
    /// The memory that is planned.
    pub memory: PlanMemory,
    /// The ends of iterations.
    pub mark: PlanMark,
}

/// What ends an iteration of a job that follows a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanMark {
    /// The steps of optimizers.
    Step,
    /// The next call of the model, in a job that only infers.
    Call,
    /// The former; where no optimizer steps, the latter.
    StepOrCall,
}

impl PlanMark {
    /// The name for the hook.
    #[cfg(unix)]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Call => "call",
            Self::StepOrCall => "step-or-call",
        }
    }
}

/// The memory that a plan is followed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanMemory {
    /// That of a GPU.
    Gpu,
    /// That of tensors on the CPU.
    Cpu,
}

impl PlanMemory {
    /// The name in the hook's settings.
    #[cfg(unix)]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Cpu => "cpu",
        }
    }
}

/// What a command is run for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To record it.
    #[default]
    Record,
    /// To run it to its end on a virtual GPU.
    Run,
    /// To run it to its end on the device that is there.
    RunOnDevice,
    /// To export the graph of one of its iterations.
    ExportGraph,
}

impl Purpose {
    /// The name in the hook's settings.
    #[cfg(unix)]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Run => "run",
            Self::RunOnDevice => "run-on-device",
            Self::ExportGraph => "export-graph",
        }
    }
}

/// Extents that the batches of recorded iterations have in turn: tensors are cut or repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryingBatches {
    /// `seq` for the tokens of a sequence, `batch` for the samples of a batch.
    pub dimension: &'static str,
    /// The extents in order, at least one.
    pub extents: Vec<u64>,
}

/// How far the host runs ahead of a virtual GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Not at all: work is complete at once. With the peaks of the same command under `RunAhead`, if they are known.
    AtOnce(Option<DevicePeaks>),
    /// Work is complete when the host waits for it, at the latest at the end of the next iteration.
    RunAhead,
}

/// What stands for the GPU while a job is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The CPU: CUDA's interface is redirected to it, and it computes.
    Cpu,
    /// A virtual GPU: PyTorch's CUDA build runs as it is, and nothing computes.
    VirtualGpu,
    /// A virtual GPU where one can be had, else the CPU.
    Auto,
}

impl Engine {
    /// The name, as in options and in the metadata of a trace.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::VirtualGpu => "virtual-gpu",
            Self::Auto => "auto",
        }
    }

    /// The engine of a process, by the name that the hook sends: the CPU without one.
    #[cfg(unix)]
    pub(crate) fn of_process(name: Option<&str>) -> Self {
        match name {
            Some(name) if name == Self::VirtualGpu.name() => Self::VirtualGpu,
            _ => Self::Cpu,
        }
    }
}

/// The type in which the CPU computes what autocast would compute in float16 on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Float16 {
    /// bfloat16, which has the same size and faster kernels.
    #[default]
    AsBfloat16,
    /// float16.
    Kept,
}

/// The longest waits for the command's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a requested export begins. The hook handles a signal, which Python delivers at the end of
    /// the current operator.
    pub export: Duration,
    /// Until the command exits once its recording is saved.
    pub exit: Duration,
    /// Without a byte of a trace that is being exported.
    pub stall: Duration,
    /// Of an export beyond the time limit of the command.
    pub overtime: Duration,
    /// Until processes that the command started end after it; they are not waited for longer.
    pub linger: Duration,
    /// Until a process ends after SIGTERM.
    pub terminate: Duration,
    /// Until a notice that no Python interpreter has loaded the hook.
    pub hook: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            export: Duration::from_secs(10),
            exit: Duration::from_secs(60),
            stall: Duration::from_secs(120),
            overtime: Duration::from_secs(600),
            linger: Duration::from_secs(2),
            terminate: Duration::from_secs(3),
            hook: Duration::from_secs(30),
        }
    }
}

/// The choice of Python stacks in a trace: they name modules and lines, and cost time and file size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// The trace has them.
    Recorded,
    /// The trace does not have them.
    Omitted,
}

/// The files of weights that a script loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// They are on this machine.
    Present,
    /// Some are not, or are cut off after their header: zeros of the same size are loaded instead.
    Absent,
}

/// A shortage of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The command exceeded its limit.
    Limit {
        /// The limit.
        limit: Bytes,
        /// Resident memory of the command's processes.
        resident: Bytes,
    },
    /// The host or the control group has little memory left.
    Host {
        /// Resident memory of the command's processes.
        resident: Bytes,
        /// Total memory.
        total: Bytes,
        /// Available memory.
        available: Bytes,
    },
    /// An allocation of the script failed.
    Refused {
        /// The requested size.
        needed: Bytes,
        /// The peak of the resident memory of the command's processes.
        resident: Bytes,
        /// The limit, if one was set.
        limit: Option<Bytes>,
    },
}
