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
pub struct InspectDocument<'a> {
    schema: &'static str,
    trace: &'a str,
    file: FileDto<'a>,
    events: EventsDto<'a>,
    job: JobDto<'a>,
    recording: Option<RecordingDto<'a>>,
    /// Of distributed jobs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<RankDto<'a>>,
    /// Of jobs that were recorded on a GPU only.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<RecordedDto<'a>>,
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
struct FileDto<'a> {
    schema_version: Option<i64>,
    profiler_options: &'a [String],
    devices: &'a [String],
    metadata: &'a [String],
}

#[derive(Serialize)]
struct EventsDto<'a> {
    total: u64,
    operators: u64,
    operators_with_shapes: u64,
    annotations: u64,
    python_calls: u64,
    host_memory: u64,
    device_memory: u64,
    out_of_memory: u64,
    links: u64,
    other: Vec<CategoryDto<'a>>,
}

#[derive(Serialize)]
struct CategoryDto<'a> {
    category: &'a str,
    events: u64,
}

#[derive(Serialize)]
struct JobDto<'a> {
    threads: u64,
    modules: u64,
    optimizers: &'a [String],
    iterations: Vec<IterationDto>,
    host_blocks: u64,
    host_blocks_never_freed: u64,
    host_peak_bytes: u64,
}

#[derive(Serialize)]
struct RecordingDto<'a> {
    recorder: Option<&'a str>,
    torch: Option<&'a str>,
    python: Option<&'a str>,
    reported_device: Option<&'a str>,
    iterations: Option<CountDto<'a>>,
    ended: Option<EndDto<'a>>,
    models: Vec<ModelDto<'a>>,
    optimizers: Vec<OptimizerDto<'a>>,
    batch_size: Option<u64>,
    autocast: &'a [String],
    strategies: Vec<StrategyDto<'a>>,
    notes: &'a [String],
}

/// The process among those of its job.
#[derive(Serialize)]
struct RankDto<'a> {
    rank: u32,
    world_size: u32,
    nodes: Option<u32>,
    backend: Option<&'a str>,
    nccl_version: Option<String>,
    groups: &'a [u32],
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
struct CountDto<'a> {
    by: &'a str,
    count: u64,
    resident_bytes: Vec<u64>,
}

#[derive(Serialize)]
struct EndDto<'a> {
    reason: &'static str,
    detail: Option<&'a str>,
}

#[derive(Serialize)]
struct ModelDto<'a> {
    class: &'a str,
    modules: u64,
    parameters: u64,
    parameter_bytes: u64,
}

#[derive(Serialize)]
struct OptimizerDto<'a> {
    class: &'a str,
    implementation: &'static str,
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

#[derive(Serialize)]
struct IterationDto {
    duration_ns: i64,
    host_blocks: u64,
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
