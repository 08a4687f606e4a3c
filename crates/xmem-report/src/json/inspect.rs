//! `xmem.inspect/1`.

use super::FindingDto;
use serde::Serialize;
use xmem::{Finding, TraceFacts};

/// What is in a trace.
#[derive(Serialize)]
pub struct InspectDocument<'a> {
    schema: &'static str,
    trace: &'a str,
    file: FileDto<'a>,
    events: EventsDto<'a>,
    job: JobDto<'a>,
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
            schema: "xmem.inspect/1",
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
            diagnostics: findings.iter().map(FindingDto::from).collect(),
        }
    }
}
