//! `xmem.offload/1`.

use crate::findings::FindingDto;
use serde::Serialize;
use xmem::Bytes;
use xmem::predict::Finding;
use xmem::types::Nanos;
use xmem_studies::offload::{Duplex, Jittered};
use xmem_studies::offloading::{OffloadAnswer, OffloadRow};

/// Offloading policies side by side, simulated on the last iteration of a recording: a model, not a measurement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OffloadDocument<'a> {
    schema: &'static str,
    /// The input, as given on the command line.
    input: &'a str,
    /// The device.
    device: &'a str,
    /// The iteration that was simulated, counted from 0.
    iteration: u32,
    /// The model of durations.
    model: ModelDto,
    /// The iteration as a graph of layers.
    graph: GraphDto,
    /// The order of layers.
    #[cfg_attr(test, schemars(extend("enum" = ["trace", "dfs", "refcount"])))]
    order: &'static str,
    /// Device memory for the iteration; null without a limit.
    capacity_bytes: Option<u64>,
    /// The layers whose inputs the policies of papers move: the same ones for all, or those of each paper.
    #[cfg_attr(test, schemars(extend("enum" = ["same", "paper"])))]
    moves: &'static str,
    /// The saved tensors that policies with a budget leave on the device.
    budget_bytes: u64,
    /// The bandwidth of the host's memory, in which host-optimizer makes its step.
    host_bytes_per_second: u64,
    /// The workspaces of convolutions: recorded, none, fixed:BYTES (at most), or grow.
    workspaces: String,
    /// The gradients of parameters: recorded, or preallocated.
    #[cfg_attr(test, schemars(extend("enum" = ["recorded", "preallocated"])))]
    gradients: &'static str,
    /// The variation of sizes that was tried; null if none was.
    jitter: Option<JitterDto>,
    /// One for each policy and placement; those of none come first.
    rows: Vec<RowDto<'a>>,
    /// Odd or missing content.
    diagnostics: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ModelDto {
    #[cfg_attr(test, schemars(extend("const" = "roofline")))]
    kind: &'static str,
    /// Its parameters, as text.
    parameters: Vec<String>,
    /// Bandwidth between host and device, one direction.
    link_bytes_per_second: u64,
    /// Latency of a copy.
    #[cfg_attr(test, schemars(range(min = 0)))]
    link_latency_us: f64,
    /// Whether each direction has a stream.
    duplex: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GraphDto {
    /// Layers by kind.
    layers: Vec<LayerDto>,
    /// Blocks with several readers.
    forks: usize,
    /// Layers with several inputs.
    joins: usize,
    /// Tensors that layers read, found for certain.
    tensors_certain: usize,
    /// Those of several candidates.
    tensors_likely: usize,
    /// Those that were not found.
    tensors_missing: usize,
    /// Bytes that the forward pass leaves to the backward pass.
    kept_for_backward_bytes: u64,
    /// Those of blocks whose uses are known.
    explained_bytes: u64,
    /// Bytes of saved tensors that wait for their backward pass, of which a budget leaves a part on the device.
    saved_bytes: u64,
    /// Steps of the device's work.
    steps: usize,
}

/// A kind.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LayerDto {
    #[cfg_attr(test, schemars(with = "crate::schemas::NameOf<xmem_studies::offload::LayerKind>"))]
    kind: &'static str,
    /// Layers of it.
    count: usize,
}

/// A policy with a placement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RowDto<'a> {
    #[cfg_attr(
        test,
        schemars(with = "crate::schemas::NameOf<xmem_studies::offloading::PolicyChoice>")
    )]
    policy: &'static str,
    /// The choice of vdnn-dyn.
    chosen: Option<ChosenDto>,
    /// The passes of convolutions that have workspaces in the recording, by what they have here.
    workspaces: WorkspacesDto,
    /// caching, pool-first-fit, pool-best-fit, gtbm, or a planner.
    placement: &'static str,
    /// Time of the step.
    #[cfg_attr(test, schemars(range(min = 0)))]
    step_us: f64,
    /// Time in which the device computes.
    #[cfg_attr(test, schemars(range(min = 0)))]
    compute_us: f64,
    /// Time in which something is copied.
    #[cfg_attr(test, schemars(range(min = 0)))]
    copying_us: f64,
    /// Time in which both happen.
    #[cfg_attr(test, schemars(range(min = 0)))]
    overlapped_us: f64,
    /// Time in which something is copied and nothing computed.
    #[cfg_attr(test, schemars(range(min = 0)))]
    exposed_us: f64,
    /// Time for which allocations wait for memory.
    #[cfg_attr(test, schemars(range(min = 0)))]
    blocked_us: f64,
    /// Time that is spent on computing blocks again.
    #[cfg_attr(test, schemars(range(min = 0)))]
    recomputed_us: f64,
    /// Time in which the host computes: the optimizer's step, if it is there.
    #[cfg_attr(test, schemars(range(min = 0)))]
    host_us: f64,
    /// Bytes moved to the host.
    to_host_bytes: u64,
    /// Bytes moved back.
    to_device_bytes: u64,
    /// The most pinned memory of the host.
    pinned_bytes: u64,
    /// The optimizer's state that is on the host for the whole step.
    on_host_bytes: u64,
    /// The most bytes of saved tensors that wait on the device; null for policies without a budget.
    waiting_bytes: Option<u64>,
    /// The most bytes that are live on the device at once.
    lower_bound_bytes: u64,
    /// The memory that the placement needs.
    peak_bytes: u64,
    /// The size of the pool with a margin of 300 MiB, for gtbm: null for other placements.
    pool_bytes: Option<u64>,
    /// The smallest memory in which the policy runs, with --min-capacity.
    smallest_capacity_bytes: Option<u64>,
    /// The share of free memory that the request at the peak could not have.
    #[cfg_attr(test, schemars(range(min = 0)))]
    unusable_at_peak: f64,
    /// What steps with other sizes need; null if none were tried, and for static plans.
    jittered: Option<JitteredDto>,
    /// The allocation that failed; all figures end there.
    out_of_memory: Option<OutOfMemoryDto<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JitterDto {
    /// The part of its size by which a tensor is larger or smaller, at most.
    #[cfg_attr(test, schemars(range(min = 0)))]
    share: f64,
    /// The steps that were tried.
    runs: usize,
    /// The seed.
    seed: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WorkspacesDto {
    /// Those with the recorded workspace.
    whole: usize,
    /// Those with a smaller one.
    smaller: usize,
    /// Those with none.
    without: usize,
    /// The largest workspace of a pass.
    largest_bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JitteredDto {
    /// What half of them need at most.
    median_bytes: u64,
    /// The most that one needs.
    most_bytes: u64,
    /// The steps that need more than peak_bytes and a margin.
    failures: Vec<FailuresDto>,
    /// The steps that run out of memory in capacity_bytes; null without one.
    out_of_memory: Option<usize>,
}

/// A margin.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailuresDto {
    /// The margin.
    margin_bytes: u64,
    /// The steps that need more.
    runs: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ChosenDto {
    #[cfg_attr(test, schemars(extend("enum" = ["none", "vdnn-conv", "vdnn-all"])))]
    policy: &'static str,
    /// Whether convolutions keep their workspaces.
    workspaces: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OutOfMemoryDto<'a> {
    /// The step.
    step: u32,
    /// Its layer.
    layer: Option<&'a str>,
    /// The size of the block.
    requested_bytes: u64,
    /// The bytes that were live.
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
                saved_bytes: answer.step.graph.saved().get(),
                steps: answer.step.graph.steps().len(),
            },
            order: answer.order.name(),
            capacity_bytes: answer.capacity.map(Bytes::get),
            moves: answer.moves.name(),
            budget_bytes: answer.budget.get(),
            host_bytes_per_second: answer.host_bandwidth.get(),
            workspaces: answer.workspaces.to_string(),
            gradients: answer.gradients.name(),
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
            host_us: micros(row.host_computes),
            to_host_bytes: row.to_host.get(),
            to_device_bytes: row.to_device.get(),
            pinned_bytes: row.pinned.get(),
            on_host_bytes: row.on_host.get(),
            waiting_bytes: row.waiting.map(|waiting| waiting.most.get()),
            lower_bound_bytes: row.live.get(),
            peak_bytes: row.peak.get(),
            pool_bytes: row.pool.map(Bytes::get),
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
