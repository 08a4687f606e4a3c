//! `xmem.offload/1`.

use crate::findings::FindingDto;
use serde::Serialize;
use xmem::Bytes;
use xmem::predict::Finding;
use xmem::types::Nanos;
use xmem_studies::offload::{Duplex, Jittered};
use xmem_studies::offloading::{LayerOrder, OffloadAnswer, OffloadRow};

/// Offloading policies side by side as a document of schema `xmem.offload/1`.
#[derive(Serialize)]
pub struct OffloadDocument<'a> {
    schema: &'static str,
    input: &'a str,
    device: &'a str,
    iteration: u32,
    model: ModelDto,
    graph: GraphDto,
    order: &'static str,
    capacity_bytes: Option<u64>,
    workspaces: String,
    jitter: Option<JitterDto>,
    rows: Vec<RowDto<'a>>,
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
struct ModelDto {
    kind: &'static str,
    parameters: Vec<String>,
    link_bytes_per_second: u64,
    link_latency_us: f64,
    duplex: bool,
}

#[derive(Serialize)]
struct GraphDto {
    layers: Vec<LayerDto>,
    forks: usize,
    joins: usize,
    tensors_certain: usize,
    tensors_likely: usize,
    tensors_missing: usize,
    kept_for_backward_bytes: u64,
    explained_bytes: u64,
    steps: usize,
}

#[derive(Serialize)]
struct LayerDto {
    kind: &'static str,
    count: usize,
}

#[derive(Serialize)]
struct RowDto<'a> {
    policy: &'static str,
    chosen: Option<ChosenDto>,
    workspaces: WorkspacesDto,
    placement: &'static str,
    step_us: f64,
    compute_us: f64,
    copying_us: f64,
    overlapped_us: f64,
    exposed_us: f64,
    blocked_us: f64,
    recomputed_us: f64,
    to_host_bytes: u64,
    to_device_bytes: u64,
    pinned_bytes: u64,
    lower_bound_bytes: u64,
    peak_bytes: u64,
    smallest_capacity_bytes: Option<u64>,
    unusable_at_peak: f64,
    jittered: Option<JitteredDto>,
    out_of_memory: Option<OutOfMemoryDto<'a>>,
}

#[derive(Serialize)]
struct JitterDto {
    share: f64,
    runs: usize,
    seed: u64,
}

#[derive(Serialize)]
struct WorkspacesDto {
    whole: usize,
    smaller: usize,
    without: usize,
    largest_bytes: u64,
}

#[derive(Serialize)]
struct JitteredDto {
    median_bytes: u64,
    most_bytes: u64,
    failures: Vec<FailuresDto>,
    out_of_memory: Option<usize>,
}

#[derive(Serialize)]
struct FailuresDto {
    margin_bytes: u64,
    runs: usize,
}

#[derive(Serialize)]
struct ChosenDto {
    policy: &'static str,
    workspaces: bool,
}

#[derive(Serialize)]
struct OutOfMemoryDto<'a> {
    step: u32,
    layer: Option<&'a str>,
    requested_bytes: u64,
    live_bytes: u64,
}

impl<'a> OffloadDocument<'a> {
    /// The document of an answer; `notes` are the oddities of the input.
    #[must_use]
    pub fn new(input: &'a str, answer: &'a OffloadAnswer, notes: &'a [Finding]) -> Self {
        let (layers, matches) = (&answer.layers, answer.step.matches);
        Self {
            schema: "xmem.offload/1",
            input,
            device: &answer.device.name,
            iteration: answer.step.iteration.0,
            model: ModelDto {
                kind: "roofline",
                parameters: answer.parameters(),
                link_bytes_per_second: answer.link.bandwidth.get(),
                link_latency_us: micros(answer.link.latency),
                duplex: answer.link.duplex == Duplex::Full,
            },
            graph: GraphDto {
                layers: layers
                    .by_kind
                    .iter()
                    .map(|&(kind, count)| LayerDto { kind: kind.name(), count })
                    .collect(),
                forks: layers.forks,
                joins: layers.joins,
                tensors_certain: matches.certain,
                tensors_likely: matches.likely,
                tensors_missing: matches.missing,
                kept_for_backward_bytes: matches.kept.get(),
                explained_bytes: matches.explained.get(),
                steps: answer.step.graph.steps().len(),
            },
            order: match answer.order {
                LayerOrder::Trace => "trace",
                LayerOrder::DepthFirst => "dfs",
            },
            capacity_bytes: answer.capacity.map(Bytes::get),
            workspaces: answer.workspaces.to_string(),
            jitter: answer.jitter.map(|jitter| JitterDto {
                share: jitter.share,
                runs: jitter.runs,
                seed: jitter.seed,
            }),
            rows: answer.rows.iter().map(|row| RowDto::new(answer, row)).collect(),
            diagnostics: notes.iter().map(FindingDto::from).collect(),
        }
    }
}

impl<'a> RowDto<'a> {
    fn new(answer: &'a OffloadAnswer, row: &'a OffloadRow) -> Self {
        Self {
            policy: row.policy.name(),
            chosen: row.chosen.as_ref().map(|chosen| ChosenDto {
                policy: chosen.policy.name(),
                workspaces: chosen.without.is_empty(),
            }),
            workspaces: WorkspacesDto {
                whole: row.workspaces.whole,
                smaller: row.workspaces.smaller,
                without: row.workspaces.without,
                largest_bytes: row.workspaces.largest.get(),
            },
            placement: row.placement.name(),
            step_us: micros(row.step_time),
            compute_us: micros(row.compute),
            copying_us: micros(row.copying),
            overlapped_us: micros(row.overlapped),
            exposed_us: micros(row.exposed()),
            blocked_us: micros(row.blocked),
            recomputed_us: micros(row.recomputed),
            to_host_bytes: row.to_host.get(),
            to_device_bytes: row.to_device.get(),
            pinned_bytes: row.pinned.get(),
            lower_bound_bytes: row.live.get(),
            peak_bytes: row.peak.get(),
            smallest_capacity_bytes: row.smallest.map(Bytes::get),
            unusable_at_peak: row.unusable_at_peak,
            jittered: row.jittered.as_ref().map(|jittered| jittered_dto(answer, row, jittered)),
            out_of_memory: row.out_of_memory.map(|failed| OutOfMemoryDto {
                step: failed.step.0,
                layer: answer.layer_at(failed.step),
                requested_bytes: failed.size.get(),
                live_bytes: failed.live.get(),
            }),
        }
    }
}

fn jittered_dto(answer: &OffloadAnswer, row: &OffloadRow, jittered: &Jittered) -> JitteredDto {
    let failures = OffloadRow::MARGINS.map(|margin| FailuresDto {
        margin_bytes: margin.get(),
        runs: jittered.failures(row.peak + margin),
    });
    JitteredDto {
        median_bytes: jittered.median().get(),
        most_bytes: jittered.most().get(),
        failures: failures.into(),
        out_of_memory: answer.capacity.map(|_| jittered.out_of_memory),
    }
}

fn micros(time: Nanos) -> f64 {
    time.get() as f64 / 1e3
}
