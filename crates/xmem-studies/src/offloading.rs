//! What offloading saved tensors to the host would save in memory, and cost in time.
//!
//! The last recorded iteration becomes a graph of layers and blocks ([`TrainingStep`]), durations are those of
//! a roofline model of the device, and each policy is simulated on two streams by xmem-offload. This is a model:
//! its parameters are part of the answer.

mod budget;
mod job;
mod kinds;
pub(crate) mod operators;
mod transformer;
mod values;

pub use budget::{Budget, ParseBudgetError};
pub use job::{Matches, TrainingStep};

use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use xmem_devices::Device;
use xmem_offload::{
    Checkpoint, Direction, Duplex, Dynamic, EventKind, GradientRule, Graph, GraphError,
    HostOptimizer, Jitter, Jittered, LayerKind, Link, Memory, Moves, OffloadActivations,
    OutOfMemory, Piece, Placed, Placement, Policy, Run, SLOWDOWN, Sample, StepId, SuperNeurons,
    Transfer, Waiting, WorkspaceCounts, WorkspaceRule, by_reference_count, depth_first, grown,
    jitter, place, simulate, simulate_within, smallest_capacity, vdnn_dynamic,
};
use xmem_planner::{Limits, Refused};
use xmem_predict::Prediction;
use xmem_timing::{MeasuredTableError, TimeModel};
use xmem_types::{BlockId, Bytes, Nanos};

/// The settings of a simulation of offloading.
#[derive(Clone, Debug)]
pub struct OffloadSettings {
    /// The policies; `none` is added in front.
    pub policies: Vec<PolicyChoice>,
    /// The placements.
    pub placements: Vec<Placement>,
    /// Device memory for the step; without a limit if it is not given.
    pub capacity: Option<Bytes>,
    /// Bytes per second between host and device, instead of the device's.
    pub bandwidth: Option<Bytes>,
    /// The number of streams that copy.
    pub duplex: Duplex,
    /// The order of layers.
    pub order: LayerOrder,
    /// A table `op,duration_us` of measured durations, which replace those of the model.
    pub durations: Option<String>,
    /// Whether to look for the smallest memory in which each policy runs.
    pub smallest: SmallestCapacity,
    /// The layers whose inputs the policies of papers move.
    pub moves: Moves,
    /// The options of SuperNeurons; what it moves is `moves`.
    pub superneurons: SuperNeurons,
    /// The saved tensors that policies with a budget leave on the device.
    pub budget: Budget,
    /// The bytes that the host reads and writes in a second, where the optimizer is there.
    pub host_bandwidth: Bytes,
    /// The workspaces of convolutions.
    pub workspaces: WorkspaceRule,
    /// The memory of gradients.
    pub gradients: GradientRule,
    /// The variation of sizes that is tried, if any.
    pub jitter: Option<Jitter>,
    /// The limits of planners that search.
    pub limits: Limits,
}

impl Default for OffloadSettings {
    fn default() -> Self {
        Self {
            policies: PolicyChoice::ALL.to_vec(),
            placements: vec![Placement::Caching],
            capacity: None,
            bandwidth: None,
            duplex: Duplex::Half,
            order: LayerOrder::Trace,
            durations: None,
            smallest: SmallestCapacity::Skip,
            moves: Moves::Same,
            superneurons: SuperNeurons::default(),
            budget: Budget::default(),
            host_bandwidth: HostOptimizer::BANDWIDTH,
            workspaces: WorkspaceRule::Recorded,
            gradients: GradientRule::Recorded,
            jitter: None,
            limits: Limits::default(),
        }
    }
}

/// Whether to look for the smallest memory in which a policy runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmallestCapacity {
    /// No.
    #[default]
    Skip,
    /// Yes, by bisection.
    Find,
}

/// The order of layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LayerOrder {
    /// As recorded.
    #[default]
    Trace,
    /// Depth first, as Dymem does: hypothetical.
    DepthFirst,
    /// Depth first, of the branches of a fork the one with most references first: hypothetical.
    ReferenceCount,
}

impl LayerOrder {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Trace, Self::DepthFirst, Self::ReferenceCount];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::DepthFirst => "dfs",
            Self::ReferenceCount => "refcount",
        }
    }
}

/// A policy, or vDNN's choice among its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyChoice {
    /// A policy.
    Fixed(Policy),
    /// The first of vDNN's that fits the capacity, or else the device.
    VdnnDynamic,
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a policy")]
pub struct ParsePolicyChoiceError(String);

impl PolicyChoice {
    /// All of them.
    pub const ALL: [Self; 11] = {
        let [
            none,
            serial,
            vdnn_all,
            vdnn_conv,
            superneurons,
            dymem,
            on_cpu,
            offload,
            checkpoint,
            host,
        ] = Policy::ALL;
        [
            Self::Fixed(none),
            Self::Fixed(serial),
            Self::Fixed(vdnn_conv),
            Self::Fixed(vdnn_all),
            Self::VdnnDynamic,
            Self::Fixed(superneurons),
            Self::Fixed(dymem),
            Self::Fixed(on_cpu),
            Self::Fixed(offload),
            Self::Fixed(checkpoint),
            Self::Fixed(host),
        ]
    };

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed(policy) => policy.name(),
            Self::VdnnDynamic => "vdnn-dyn",
        }
    }
}

impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PolicyChoice {
    type Err = ParsePolicyChoiceError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|policy| policy.name() == name);
        named.ok_or_else(|| ParsePolicyChoiceError(name.to_owned()))
    }
}

/// A simulation of offloading that cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OffloadError {
    /// The trace has no iteration.
    #[error("the trace has no iteration: record a training loop with `xmem profile`")]
    NoIteration,
    /// The recorded iteration makes no graph.
    #[error("the recorded iteration does not make a graph of layers")]
    Graph(#[from] GraphError),
    /// The table of durations is not one.
    #[error("the table of durations cannot be read")]
    Durations(#[from] MeasuredTableError),
    /// The table of durations is of other operators.
    #[error(
        "no operator of the table of durations is in the iteration: names are those of the trace, as `aten::conv2d`"
    )]
    OtherOperators,
    /// A planner gives no plan.
    #[error(transparent)]
    Planner(#[from] Refused),
}

/// The measured operators that are named as not being in the iteration, at most.
const NAMED: usize = 5;

/// The policies side by side.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OffloadAnswer {
    /// The device.
    pub device: Device,
    /// The model of durations, with its parameters.
    pub model: TimeModel,
    /// The link between host and device.
    pub link: Link,
    /// The step that was simulated.
    pub step: TrainingStep,
    /// Its layers by kind.
    pub layers: LayerCounts,
    /// The order of layers.
    pub order: LayerOrder,
    /// Device memory for the step, if it was limited.
    pub capacity: Option<Bytes>,
    /// The layers whose inputs the policies of papers move.
    pub moves: Moves,
    /// The saved tensors that policies with a budget leave on the device.
    pub budget: Bytes,
    /// The bytes that the host reads and writes in a second, where the optimizer is there.
    pub host_bandwidth: Bytes,
    /// The workspaces of convolutions.
    pub workspaces: WorkspaceRule,
    /// The memory of gradients.
    pub gradients: GradientRule,
    /// The variation of sizes that was tried, if any.
    pub jitter: Option<Jitter>,
    /// One for each policy and placement; those of `none` come first.
    pub rows: Vec<OffloadRow>,
}

impl OffloadAnswer {
    /// The parameters of the durations, one a line: those of the model, and of convolutions with less workspace than
    /// recorded, if there are any.
    #[must_use]
    pub fn parameters(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.model.to_string().lines().map(str::to_owned).collect();
        let is_met = |name: &&String| self.step.measured.contains(*name);
        let others: Vec<&str> =
            self.model.measured.keys().filter(|name| !is_met(name)).map(String::as_str).collect();
        if !others.is_empty() {
            let more = others.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let named = others[..others.len().min(NAMED)].join(", ");
            lines.push(format!("not in the iteration, of the measured ones: {named}{more}"));
        }
        let is_cut = |row: &OffloadRow| row.workspaces.smaller + row.workspaces.without > 0;
        if self.rows.iter().any(|row| row.host_computes > Nanos::ZERO) {
            lines.push(format!(
                "optimizer on the host: {:.1} GB/s of its memory",
                self.host_bandwidth.get() as f64 / 1e9
            ));
        }
        if self.rows.iter().any(is_cut) {
            lines.push(format!(
                "convolutions with less workspace than recorded take {SLOWDOWN:.1} times as long"
            ));
        }
        lines
    }
}

/// The layers of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerCounts {
    /// How many there are of each kind that there is.
    pub by_kind: Vec<(LayerKind, usize)>,
    /// Blocks that several layers read.
    pub forks: usize,
    /// Layers that read outputs of several.
    pub joins: usize,
}

/// A policy with a placement.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OffloadRow {
    /// The policy.
    pub policy: PolicyChoice,
    /// The choice of vDNN, if it had one.
    pub chosen: Option<Dynamic>,
    /// The workspaces of convolutions.
    pub workspaces: WorkspaceCounts,
    /// The placement.
    pub placement: Placement,
    /// The time of the step.
    pub step_time: Nanos,
    /// The time that the device computes.
    pub compute: Nanos,
    /// The time in which something is copied.
    pub copying: Nanos,
    /// The part of it in which the device computes, too.
    pub overlapped: Nanos,
    /// The time for which allocations wait for memory.
    pub blocked: Nanos,
    /// The time that is spent on computing blocks again.
    pub recomputed: Nanos,
    /// The time that the host computes: the optimizer's step, if it is there.
    pub host_computes: Nanos,
    /// The bytes of the optimizer's state that are on the host for the whole step.
    pub on_host: Bytes,
    /// The saved tensors on the device, if the policy has a budget.
    pub waiting: Option<Waiting>,
    /// The size of the pool with its margin, if the placement has one that is reserved ahead (GTBM).
    pub pool: Option<Bytes>,
    /// Bytes that are moved to the host.
    pub to_host: Bytes,
    /// Bytes that are moved back.
    pub to_device: Bytes,
    /// The most pinned memory of the host.
    pub pinned: Bytes,
    /// The most bytes that are live on the device: the lower bound of all placements.
    pub live: Bytes,
    /// The memory that the placement needs.
    pub peak: Bytes,
    /// The share of free memory that the request could not have with which the memory grew to its peak (U_f).
    pub unusable_at_peak: f64,
    /// The smallest memory in which the policy runs with the placement, if it was looked for; none for static plans.
    pub smallest: Option<Bytes>,
    /// What steps with other sizes need, if they were tried; none for static plans.
    pub jittered: Option<Jittered>,
    /// The memory over time.
    pub series: Vec<Sample>,
    /// The pieces of device memory that the step uses, in the order of allocation.
    pub pieces: Vec<OffloadPiece>,
    /// The copies, in the order in which they were queued.
    pub transfers: Vec<Transfer>,
    /// The spans in which the device computes, by step.
    pub computing: Vec<(Nanos, Nanos)>,
    /// The allocation that failed, if the memory was limited.
    pub out_of_memory: Option<OutOfMemory>,
}

/// A block on the device, or a part of its life there if it was on the host in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadPiece {
    /// The block, in the graph of the step.
    pub block: BlockId,
    /// Its bytes.
    pub size: Bytes,
    /// The step of the graph during which it is allocated.
    pub step: StepId,
    /// The time at which it is allocated.
    pub start: Nanos,
    /// The time at which it is freed: the end of the step if it is not.
    pub end: Nanos,
    /// Its address, if the placement has one space.
    pub address: Option<Bytes>,
}

impl OffloadPiece {
    fn all(run: &Run, addresses: &[Option<Bytes>]) -> Vec<Self> {
        let mut pieces: Vec<Self> = Vec::with_capacity(run.pieces.len());
        for event in &run.events {
            let row = event.piece.index();
            match event.kind {
                EventKind::Alloc => {
                    debug_assert_eq!(
                        row,
                        pieces.len(),
                        "pieces are numbered as they are allocated"
                    );
                    let Piece { block, size, .. } = run.pieces[row];
                    let (step, start, end) = (event.step, event.time, run.step_time);
                    let address = addresses[row];
                    pieces.push(Self { block, size, step, start, end, address });
                }
                EventKind::Free => pieces[row].end = event.time,
            }
        }
        pieces
    }
}

impl OffloadRow {
    /// The margin of Dymem's pool: with 300 MB, 0.9 % of its steps failed (table 2).
    pub const MARGIN: Bytes = Bytes::mib(300);

    /// The margins of a pool that are of interest where sizes vary: those of Dymem's table 2, and none.
    pub const MARGINS: [Bytes; 4] =
        [Bytes::ZERO, Bytes::mib(100), Bytes::mib(300), Bytes::mib(500)];

    /// The time in which something is copied while nothing is computed.
    #[must_use]
    pub fn exposed(&self) -> Nanos {
        self.copying - self.overlapped
    }
}

impl OffloadAnswer {
    /// The name of the layer that a step belongs to.
    #[must_use]
    pub fn layer_at(&self, step: StepId) -> Option<&str> {
        let graph = &self.step.graph;
        let layer = graph.steps().get(step.index())?.work.layer()?;
        Some(&graph.layers()[layer.index()].name)
    }

    /// The row of `none` with the placement of another row.
    #[must_use]
    pub fn baseline(&self, row: &OffloadRow) -> Option<&OffloadRow> {
        let is_none = |other: &&OffloadRow| {
            other.policy == PolicyChoice::Fixed(Policy::None) && other.placement == row.placement
        };
        self.rows.iter().find(is_none)
    }
}

impl TrainingStep {
    /// The last recorded iteration of a job as a graph of layers and blocks, with durations by a model.
    ///
    /// # Errors
    /// If the job has no iteration.
    pub fn of(prediction: &Prediction<'_>, model: &TimeModel) -> Result<Self, OffloadError> {
        let (profile, schedule) = (prediction.profile(), prediction.schedule());
        job::training_step(profile, schedule, model)?.ok_or(OffloadError::NoIteration)
    }
}

impl OffloadSettings {
    /// Simulates offloading policies on the last recorded iteration of a job.
    ///
    /// # Errors
    /// If the job has no iteration, or a planner gives no plan.
    pub fn simulate(
        &self,
        prediction: &Prediction<'_>,
        device: &Device,
    ) -> Result<OffloadAnswer, OffloadError> {
        let device = device.clone();
        let mut model = TimeModel::of(&device);
        if let Some(table) = &self.durations {
            model.measure(table)?;
        }
        let mut step = TrainingStep::of(prediction, &model)?;
        if !model.measured.is_empty() && step.measured.is_empty() {
            return Err(OffloadError::OtherOperators);
        }
        step.graph = match self.order {
            LayerOrder::Trace => step.graph,
            LayerOrder::DepthFirst => depth_first(&step.graph)?,
            LayerOrder::ReferenceCount => by_reference_count(&step.graph)?,
        };
        if self.gradients == GradientRule::Preallocated {
            step.graph = step.graph.with_preallocated_gradients()?;
        }
        let bandwidth = self.bandwidth.unwrap_or(Bytes(model.pcie.get()));
        let link = Link { bandwidth, latency: model.transfer_latency, duplex: self.duplex };
        let mut policies = self.policies.clone();
        policies.retain(|&policy| policy != PolicyChoice::Fixed(Policy::None));
        policies.insert(0, PolicyChoice::Fixed(Policy::None));
        let sweep = Sweep { step: &step, link, settings: self, device: &device };
        let mut rows = Vec::new();
        for policy in policies {
            sweep.policy(policy, &mut rows)?;
        }
        let budget = self.budget.of(step.graph.saved());
        let layers = LayerCounts::of(&step);
        Ok(OffloadAnswer {
            device,
            model,
            link,
            layers,
            step,
            order: self.order,
            capacity: self.capacity,
            moves: self.moves,
            budget,
            host_bandwidth: self.host_bandwidth,
            workspaces: self.workspaces,
            gradients: self.gradients,
            jitter: self.jitter,
            rows,
        })
    }
}

struct Sweep<'a> {
    step: &'a TrainingStep,
    link: Link,
    settings: &'a OffloadSettings,
    device: &'a Device,
}

/// A step as a policy runs it.
struct Setup {
    policy: Policy,
    chosen: Option<Dynamic>,
    /// With the workspaces that convolutions have.
    graph: Graph,
    /// The same, as far as it may be changed to run in less memory.
    least: Graph,
}

impl Sweep<'_> {
    fn policy(&self, choice: PolicyChoice, rows: &mut Vec<OffloadRow>) -> Result<(), OffloadError> {
        let mut free: Option<(Graph, Run)> = None;
        for &placement in &self.settings.placements {
            let Setup { policy, chosen, graph, least } = self.setup(choice, placement);
            let limits = &self.settings.limits;
            let (run, placed) = match self.settings.capacity {
                Some(capacity) => {
                    simulate_within(&graph, policy, &self.link, placement, capacity, limits)?
                }
                // Without a limit, the placement has no influence on the run of the same step.
                None => {
                    let run = match free.take().filter(|_| chosen.is_none()) {
                        Some((same, run)) if same == graph => run,
                        _ => simulate(&graph, policy, &self.link, Memory::Unlimited),
                    };
                    let placed = place(&run, placement, limits)?;
                    (run, placed)
                }
            };
            let smallest = match self.settings.smallest {
                SmallestCapacity::Skip => None,
                SmallestCapacity::Find => smallest_capacity(&least, policy, &self.link, placement),
            };
            let jittered = match &self.settings.jitter {
                Some(sizes) => {
                    let capacity = self.settings.capacity;
                    jitter(&graph, policy, &self.link, placement, capacity, sizes)?
                }
                None => None,
            };
            let workspaces = WorkspaceCounts::of(&self.step.graph, &graph);
            let row = row(choice, chosen, &run, placed);
            rows.push(OffloadRow { smallest, jittered, workspaces, ..row });
            free = Some((graph, run));
        }
        Ok(())
    }

    fn setup(&self, choice: PolicyChoice, placement: Placement) -> Setup {
        let recorded = &self.step.graph;
        let rule = self.settings.workspaces;
        let graph = match rule {
            WorkspaceRule::Recorded | WorkspaceRule::Grow => recorded.clone(),
            WorkspaceRule::Without => recorded.without_workspaces(),
            WorkspaceRule::AtMost(most) => recorded.with_workspaces(|_, size| size.min(most)),
        };
        let device = self.device.memory.saturating_sub(self.device.context);
        let capacity = self.settings.capacity.unwrap_or(device);
        let policy = match choice {
            PolicyChoice::Fixed(policy) => self.with_options(policy),
            PolicyChoice::VdnnDynamic => {
                let moves = self.settings.moves;
                let chosen = vdnn_dynamic(&graph, moves, &self.link, placement, capacity);
                let graph = chosen.graph(&graph);
                let least = graph.clone();
                return Setup { policy: chosen.policy, chosen: Some(chosen), graph, least };
            }
        };
        let (graph, least) = match rule {
            WorkspaceRule::Grow => {
                (grown(&graph, policy, &self.link, placement, capacity), graph.without_workspaces())
            }
            _ => (graph.clone(), graph),
        };
        Setup { policy, chosen: None, graph, least }
    }

    /// The policy with the options of the settings.
    fn with_options(&self, policy: Policy) -> Policy {
        let settings = self.settings;
        let moves = settings.moves;
        let budget = settings.budget.of(self.step.graph.saved());
        match policy {
            Policy::Serial(_) => Policy::Serial(moves),
            Policy::VdnnAll(_) => Policy::VdnnAll(moves),
            Policy::SuperNeurons(_) => {
                Policy::SuperNeurons(SuperNeurons { moves, ..settings.superneurons })
            }
            Policy::Dymem(_) => Policy::Dymem(moves),
            Policy::OffloadActivations(_) => {
                Policy::OffloadActivations(OffloadActivations { budget })
            }
            Policy::Checkpoint(_) => Policy::Checkpoint(Checkpoint { budget }),
            Policy::HostOptimizer(_) => {
                Policy::HostOptimizer(HostOptimizer { bandwidth: settings.host_bandwidth })
            }
            other => other,
        }
    }
}

fn row(policy: PolicyChoice, chosen: Option<Dynamic>, run: &Run, placed: Placed) -> OffloadRow {
    let unusable_at_peak = placed.at_peak().map_or(0.0, |sample| sample.unusable);
    OffloadRow {
        policy,
        chosen,
        placement: placed.placement,
        step_time: run.step_time,
        compute: run.compute(),
        copying: run.copying(),
        overlapped: run.overlapped(),
        blocked: run.blocked,
        recomputed: run.recomputed,
        host_computes: run.host_computes,
        on_host: run.on_host,
        waiting: run.waiting,
        pool: (placed.placement == Placement::Gtbm).then(|| placed.pool(OffloadRow::MARGIN)),
        to_host: run.moved(Direction::ToHost),
        to_device: run.moved(Direction::ToDevice),
        pinned: run.pinned_peak(),
        live: placed.lower_bound,
        peak: placed.peak,
        unusable_at_peak,
        smallest: None,
        jittered: None,
        workspaces: WorkspaceCounts::default(),
        pieces: OffloadPiece::all(run, &placed.addresses),
        transfers: run.transfers.clone(),
        computing: run.computing.clone(),
        series: placed.series,
        out_of_memory: run.out_of_memory,
    }
}

impl LayerCounts {
    fn of(step: &TrainingStep) -> Self {
        let layers = step.graph.layers();
        let count = |kind| layers.iter().filter(|layer| layer.kind == kind).count();
        let counts = LayerKind::ALL.into_iter().map(|kind| (kind, count(kind)));
        let blocks = step.graph.blocks();
        Self {
            by_kind: counts.filter(|&(_, count)| count > 0).collect(),
            forks: blocks.iter().filter(|block| block.readers.len() > 1).count(),
            joins: layers.iter().filter(|layer| layer.inputs.len() > 1).count(),
        }
    }
}
