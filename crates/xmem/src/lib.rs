//! The GPU memory that a PyTorch training job needs, over time and by cause. The whole
//! pipeline behind one builder: a CPU profiler trace in, an [`Answer`] out. A trace or a memory snapshot that
//! was recorded on a GPU is replayed as it is.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = xmem::find("rtx3060-12g")?.clone();
//! let answer = xmem::Estimate::builder(device).build().path("trace.json.zst")?;
//! if answer.verdict == xmem::Verdict::Fits {
//!     println!("fits: nvidia-smi will show {}", answer.peak.device);
//! }
//! for share in &answer.by_role {
//!     println!("{:>12} {}", share.bytes, share.role.name());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A trace is read once and can be estimated for many devices:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use xmem::{Bytes, Device, Estimate, Job, ReadOptions, Verdict};
//!
//! let trace = r#"{"traceEvents": [
//!     {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 1, "tid": 1, "ts": 1, "dur": 5},
//!     {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
//!      "args": {"Bytes": 83886080, "Addr": 64, "Device Type": 0, "Device Id": -1}}
//! ]}"#;
//! let job = Job::from_bytes(trace.as_bytes(), &ReadOptions::default())?;
//! for capacity in [Bytes::gib(2), Bytes::gib(24)] {
//!     let answer = Estimate::builder(Device::custom(capacity)).build().job(&job)?;
//!     assert_eq!(answer.verdict, Verdict::Fits);
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod answer;
mod compiled;
mod cudnn_release;
pub mod difference;
mod distributed;
mod error;
mod estimate;
mod facts;
mod growth;
mod history;
mod input;
mod iterations;
mod job;
mod lengths;
mod nccl;
mod offloading;
mod planning;
mod ranks;
mod recorded;
mod recorded_twice;
mod script_settings;
mod timings;
mod variants;
mod verdict;

pub use answer::{Answer, GpuNeed};
pub use error::EstimateError;
pub use estimate::{ClearedGradients, Estimate, EstimateBuilder};
pub use facts::{GpuFacts, IterationFacts, ModelFacts, OptimizerFacts, RecordingFacts, TraceFacts};
pub use input::InputError;
pub use iterations::{Iterations, ParseIterationsError};
pub use job::Job;
pub use lengths::LengthsAnswer;
pub use nccl::NcclMemory;
pub use offloading::{
    LayerCounts, LayerOrder, Matches, OffloadAnswer, OffloadError, OffloadPiece, OffloadRow,
    OffloadSettings, ParsePolicyChoiceError, PolicyChoice, SmallestCapacity, TrainingStep,
};
pub use planning::{
    AllocatorRun, BlockFacts, Breakdown, BreakdownShare, DnnMemCategory, FragmentationSeries,
    HintedAnswer, HintedFigures, HintedIteration, InterruptedRun, Interruption, JobPeaks, KeptPlan,
    KeptRequest, OutsideBlocks, ParseInterruptionError, PeakRequest, Placement, PlanAnswer,
    PlanBlocks, PlanListError, PlanScope, PlanSettings, PlanSource, PlannerOutcome, PlanningError,
    SegmentSpan,
};
pub use ranks::{JobRanks, RankAnswer, RankFigures, SeveralJobs};
pub use timings::{Stage, Timings};
pub use variants::{FigureDifference, JobVariant, JobVariants};
pub use verdict::{Decision, IntegrityPolicy, Need, TightBy, Verdict};

pub use xmem_analyzer::integrity::{Condition, Integrity};
pub use xmem_analyzer::recording::{EndReason, Implementation, Rank, Strategy};
pub use xmem_analyzer::{GpuRecording, GpuSource, Phase, Profile, Redaction, Role};
pub use xmem_convolutions::{
    Basis, ConvPass, ConvShape, ConvolutionAnswers, ConvolutionQuestion, ConvolutionSource,
    CudnnRelease, ElementType, FittedModel, Implausible, KeptAnswers, Layout, LibraryPlans,
    NoWorkspaces, PlanChoice, Plans, RecordedCudnn, Trial, Volume,
};
pub use xmem_cudnn::{
    AutomaticSource, CachedAnswers, ChoiceOrigin, Cudnn, FoundLibrary, SearchPath, SourceChoice,
    SourceError, SourceSettings, WorkerCommand,
};
pub use xmem_orchestrator::{
    AttentionKernels, CompletionError, CompletionModel, CudnnBenchmark, OptimizerImpl, Resharding,
    ReshardingError, Rule, RuleEffect, StreamCompletion, Target, ZeroGradPlace,
    parse_cublas_workspace_config, rules,
};
pub use xmem_planner::{
    CsvBlocks, CsvError, FreePieces, HintsError, Limits, Moment, ParsePlannerError, Plan, Planned,
    Planner, Proof, Refused, read_csv,
};
pub use xmem_predict::{
    AllocatorCounts, AllocatorError, AllocatorKind, AllocatorSettings, AllocatorSetup, BlockKey,
    Bounds, CapacitySearch, Confidence, Curve, DEFAULT_TOTAL, Detail, Dimension, ExtentsError,
    FailedAllocation, Finding, FitSummary, Fragmentation, GrowthPoint, HeldBlock, IterationPeak,
    JobEnvironment, LengthModel, LengthRun, LengthSettings, LengthsError, LiveBlock, MAX_LEFT_OUT,
    MemoryAtFailure, MemoryStats, MomentSpan, NoSegments, Offset, OperationList, OrderPeaks,
    Origin, OutOfMemory, PathId, Peak, PeakRange, Place, PredictedBlock, PredictedMemory,
    Prediction, Quantiles, RoleShare, ShortAt, Simulation, SimulationSettings, SimulationSummary,
    SnapshotEnd, Stacked, StackedGroup, Step, StepError, StepOutcome, TextId, Timeline,
    TimelineBlock, TimelineFailure, TimelineLeftOut, TimelineMoment, TimelineSegment, TreeNode,
    UncertaintyEffect, UnmodeledShare, VaryingDimension,
};
pub use xmem_profiles::{
    Bandwidth, ComputeCapability, Device, DeviceFileError, DeviceNameError,
    ParseComputeCapabilityError, Sources, cards, devices, find, find_all,
};
pub use xmem_simulator::{
    AddressOrder, AllocatorChoice, AllocatorConfig, BlockUse, Completion, ConfError, DeviceConfig,
    Event, EventAction, KnownOption, Misuse, Operation, PoolKind, PoolOptions, PoolService,
    PrivatePoolId, SegmentState, Splitting, Unsupported, alloc_conf_options, alloc_conf_variables,
    newest_release, oldest_release,
};
pub use xmem_snapshot::{Snapshot, write as write_snapshot};
pub use xmem_timing::TimeModel;
pub use xmem_trace::{
    EventParser, ReadError, ReadOptions, RewriteError, RewriteSummary, Trace, open_input,
    rewrite_path,
};
pub use xmem_types::{
    Addr, BlockId, Bytes, Diagnostic, Diagnostics, ExceededLimit, InputLimits, IterationId,
    Location, Nanos, Request, RequestKind, Severity, StreamId, TorchVersion, WithheldReason,
    Workload, is_printable, printable, printable_lines, printable_path,
};

// The crates of the pipeline. All types that values of the API consist of can be named from here.
pub use xmem_analyzer as analyzer;
pub use xmem_convolutions as convolutions;
pub use xmem_cudnn as cudnn;
pub use xmem_offload as offload;
pub use xmem_orchestrator as orchestrator;
pub use xmem_planner as planner;
pub use xmem_predict as predict;
pub use xmem_profiles as profiles;
pub use xmem_simulator as simulator;
pub use xmem_snapshot as snapshot;
pub use xmem_timing as timing;
pub use xmem_trace as trace;
pub use xmem_types as types;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
