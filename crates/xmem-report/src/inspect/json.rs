//! `xmem.inspect/2`.

use crate::findings::FindingDto;
use crate::recorded::RecordedDto;
use crate::variants::json::StrategyDto;
use serde::Serialize;
use xmem::analyzer::recording::Rank;
use xmem::predict::Finding;
use xmem::{RecordingFacts, TraceFacts};

/// The contents of a trace.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InspectDocument<'a> {
    schema: &'static str,
    /// The input, as given on the command line.
    trace: &'a str,
    /// Metadata of the file.
    file: FileDto<'a>,
    /// Events by kind.
    events: EventsDto<'a>,
    /// The structure of the job.
    job: JobDto<'a>,
    /// Metadata recorded by xmem profile; null for traces of other profilers.
    recording: Option<RecordingDto<'a>>,
    /// The process among those of its job. Only of distributed jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "RankDto<'a>"))]
    rank: Option<RankDto<'a>>,
    /// The recording, if it was made on a GPU; absent for recordings of a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "RecordedDto<'a>"))]
    recorded: Option<RecordedDto<'a>>,
    /// Odd or missing content.
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FileDto<'a> {
    /// schemaVersion.
    schema_version: Option<i64>,
    /// Profiler options that were on.
    profiler_options: &'a [String],
    /// Devices the profiler listed.
    devices: &'a [String],
    /// Other keys at the top level.
    metadata: &'a [String],
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EventsDto<'a> {
    /// All.
    total: u64,
    /// Operators.
    operators: u64,
    /// Those with recorded shapes.
    operators_with_shapes: u64,
    /// Annotations.
    annotations: u64,
    /// Python calls.
    python_calls: u64,
    /// Allocations and frees of host memory.
    host_memory: u64,
    /// Allocations and frees of device memory.
    device_memory: u64,
    /// Out-of-memory events.
    out_of_memory: u64,
    /// Links between forward and backward.
    links: u64,
    /// Others by category.
    other: Vec<CategoryDto<'a>>,
}

/// A category.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CategoryDto<'a> {
    /// Its name.
    category: &'a str,
    /// Events.
    events: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JobDto<'a> {
    /// Threads.
    threads: u64,
    /// Distinct module paths.
    modules: u64,
    /// Optimizers whose steps were recorded.
    optimizers: &'a [String],
    /// Iterations in order.
    iterations: Vec<IterationDto>,
    /// Host blocks.
    host_blocks: u64,
    /// Those that outlive the trace.
    host_blocks_never_freed: u64,
    /// Peak of host memory in use.
    host_peak_bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RecordingDto<'a> {
    /// Version of the recorder.
    recorder: Option<&'a str>,
    /// torch.__version__.
    torch: Option<&'a str>,
    /// Version of Python.
    python: Option<&'a str>,
    /// The device reported to the script.
    reported_device: Option<&'a str>,
    /// The unit of iterations, and the number of recorded ones.
    iterations: Option<CountDto<'a>>,
    /// The end of the recording.
    ended: Option<EndDto<'a>>,
    /// The models.
    models: Vec<ModelDto<'a>>,
    /// The optimizers.
    optimizers: Vec<OptimizerDto<'a>>,
    /// Samples in a batch.
    batch_size: Option<u64>,
    /// Data types requested from autocast.
    autocast: &'a [String],
    /// The strategies by which the job is distributed; empty where there are none, or an earlier recorder did not note
    /// them.
    strategies: Vec<StrategyDto<'a>>,
    /// Notes of the recorder to the user.
    notes: &'a [String],
}

/// The process among those of its job.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RankDto<'a> {
    rank: u32,
    world_size: u32,
    /// Machines.
    nodes: Option<u32>,
    /// Of the default process group.
    backend: Option<&'a str>,
    nccl_version: Option<String>,
    /// The numbers of ranks of the process groups of NCCL to which the process belongs.
    groups: &'a [u32],
    /// The numbers of ranks of the communicators of NCCL that were made; null where that was not recorded.
    communicators: Option<&'a [u32]>,
}

impl<'a> From<&'a Rank> for RankDto<'a> {
    fn from(rank: &'a Rank) -> Self {
        Self {
            rank: rank.rank,
            world_size: rank.world_size,
            nodes: rank.nodes,
            backend: rank.backend.as_deref(),
            nccl_version: rank.nccl.map(|(major, minor, patch)| format!("{major}.{minor}.{patch}")),
            groups: &rank.groups,
            communicators: rank.communicators.as_deref(),
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CountDto<'a> {
    /// optimizer steps, forward calls, backward passes or marked iterations.
    by: &'a str,
    /// Number.
    count: u64,
    /// Resident memory of the recording process at the end of each iteration, as far as it was noted (at most 1,000).
    resident_bytes: Vec<u64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct EndDto<'a> {
    /// complete if all requested iterations were recorded.
    #[cfg_attr(test, schemars(extend("enum" = ["complete", "script_end", "exit", "exception", "signal", "timeout", "memory", "other"])))]
    reason: &'static str,
    /// The exception, signal or exit code.
    detail: Option<&'a str>,
}

/// A model.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ModelDto<'a> {
    /// Its class, with the module it is defined in.
    class: &'a str,
    /// Modules that it consists of.
    modules: u64,
    /// Its parameters.
    parameters: u64,
    /// Their bytes; those that lie in one storage count once.
    parameter_bytes: u64,
}

/// An optimizer.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OptimizerDto<'a> {
    /// Its class, with the module it is defined in.
    class: &'a str,
    /// The implementation that the script requested; default is PyTorch's choice.
    #[cfg_attr(test, schemars(extend("enum" = ["default", "foreach", "fused", "for-loop"])))]
    implementation: &'static str,
    /// Tensors that it updates.
    tensors: u64,
}

impl<'a> From<&'a RecordingFacts> for RecordingDto<'a> {
    fn from(facts: &'a RecordingFacts) -> Self {
        Self {
            recorder: facts.recorder.as_deref(),
            torch: facts.torch.as_deref(),
            python: facts.python.as_deref(),
            reported_device: facts.reported_device.as_deref(),
            iterations: facts.iterations.as_ref().map(|(by, count)| CountDto {
                by,
                count: *count,
                resident_bytes: facts.resident.iter().map(|bytes| bytes.get()).collect(),
            }),
            ended: facts
                .ended
                .map(|reason| EndDto { reason: reason.name(), detail: facts.ended_by.as_deref() }),
            models: facts
                .models
                .iter()
                .map(|m| ModelDto {
                    class: &m.class,
                    modules: m.modules,
                    parameters: m.parameters,
                    parameter_bytes: m.parameter_bytes.get(),
                })
                .collect(),
            optimizers: facts
                .optimizers
                .iter()
                .map(|o| OptimizerDto {
                    class: &o.class,
                    implementation: o.implementation.name(),
                    tensors: o.tensors,
                })
                .collect(),
            batch_size: facts.batch_size,
            autocast: &facts.autocast,
            strategies: facts.strategies.iter().map(StrategyDto::from).collect(),
            notes: &facts.notes,
        }
    }
}

/// An iteration as recorded.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct IterationDto {
    /// Time on the recording machine, in nanoseconds.
    duration_ns: i64,
    /// Host blocks allocated in it.
    host_blocks: u64,
    /// Their bytes.
    host_allocated_bytes: u64,
}

impl<'a> InspectDocument<'a> {
    /// The document of `trace`, the input as the user named it.
    #[must_use]
    pub fn new(trace: &'a str, facts: &'a TraceFacts, findings: &'a [Finding]) -> Self {
        Self {
            schema: "xmem.inspect/2",
            trace,
            file: FileDto {
                schema_version: facts.schema_version,
                profiler_options: &facts.options,
                devices: &facts.devices,
                metadata: &facts.metadata,
            },
            events: EventsDto {
                total: facts.events,
                operators: facts.operators,
                operators_with_shapes: facts.operators_with_shapes,
                annotations: facts.annotations,
                python_calls: facts.python_calls,
                host_memory: facts.host_memory_events,
                device_memory: facts.device_memory_events,
                out_of_memory: facts.out_of_memory_events,
                links: facts.links,
                other: facts
                    .other_events
                    .iter()
                    .map(|(category, events)| CategoryDto { category, events: *events })
                    .collect(),
            },
            job: JobDto {
                threads: facts.threads,
                modules: facts.modules,
                optimizers: &facts.optimizers,
                iterations: facts
                    .iterations
                    .iter()
                    .map(|i| IterationDto {
                        duration_ns: i.duration.get(),
                        host_blocks: i.blocks,
                        host_allocated_bytes: i.allocated.get(),
                    })
                    .collect(),
                host_blocks: facts.blocks,
                host_blocks_never_freed: facts.blocks_never_freed,
                host_peak_bytes: facts.host_peak.get(),
            },
            recording: facts.recording.as_ref().map(RecordingDto::from),
            rank: facts.rank.as_ref().map(RankDto::from),
            recorded: facts.gpu.as_ref().map(RecordedDto::from),
            diagnostics: findings.iter().map(FindingDto::from).collect(),
        }
    }
}
