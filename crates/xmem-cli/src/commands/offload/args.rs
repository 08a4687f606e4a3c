//! Arguments of `xmem offload`.

use crate::choice::{choice, choices};
use crate::cudnn::CudnnArgs;
use crate::device::PlanDeviceArgs;
use crate::reading::ReadingArgs;
use crate::values::{Selection, bandwidth, duration, selection, share_above_zero};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use xmem::Bytes;
use xmem_studies::offload::{GradientRule, Moves, Placement, WorkspaceRule};
use xmem_studies::offloading::{Budget, LayerOrder, PolicyChoice};

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] = &[
    "trace",
    "device",
    "policy",
    "placement",
    "capacity",
    "min_capacity",
    "budget",
    "moves",
    "pcie_gbps",
    "format",
    "output",
];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xmem offload trace.json.gz --device a100-40g\n  \
        xmem offload trace.json.gz --device t4-16g --policy vdnn-all,dymem --placement all\n  \
        xmem offload trace.json.gz --device a100-40g --policy offload-activations,checkpoint --budget 25%\n  \
        xmem offload trace.json.gz --device t4-16g --policy vdnn-dyn --capacity 6GiB\n  \
        xmem offload trace.json.gz --device t4-16g --capacity 6GiB --workspace grow\n  \
        xmem offload trace.json.gz --policy dymem --placement gtbm --jitter 5%\n  \
        xmem offload trace.json.gz --device a100-40g --pcie-gbps 12 --duplex --format json\n\n\
        Durations are those of a roofline model, whose parameters the answer has; no figure is a measurement.\n\
        Exit code: 0 simulated, 2 usage error, 3 unreadable or nothing to simulate, 4 the recording is damaged."
)]
pub(crate) struct OffloadArgs {
    /// Trace, plain or compressed with gzip or zstd; `-` for standard input. Its last iteration is
    /// simulated
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) device: PlanDeviceArgs,
    #[command(flatten)]
    pub(crate) offloading: OffloadingArgs,
    #[command(flatten)]
    pub(crate) answer: OffloadAnswerArgs,
    #[command(flatten)]
    pub(crate) cudnn: CudnnArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Offloading")]
pub(crate) struct OffloadingArgs {
    /// Policies: all, or names of none, serial, vdnn-conv, vdnn-all, vdnn-dyn, superneurons, dymem,
    /// save-on-cpu, offload-activations, checkpoint, host-optimizer; `none` is always there
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "all", value_parser = policy)]
    pub(crate) policy: Vec<Selection<PolicyChoice>>,
    /// Placements of blocks in memory: all, or names of caching (PyTorch's allocator),
    /// pool-first-fit, pool-best-fit, gtbm (Dymem's), and planners of `xmem plan`
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "caching", value_parser = placement)]
    pub(crate) placement: Vec<Selection<Placement>>,
    /// Device memory for the iteration, for example 6GiB; allocations wait for copies to the host
    /// (default: no limit)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device)]
    pub(crate) capacity: Option<Bytes>,
    /// Find the smallest memory in which each policy runs with each placement
    #[arg(long)]
    pub(crate) min_capacity: bool,
    /// Bandwidth between host and device, one direction, in 10^9 bytes per second (default: that of
    /// the device's PCI Express)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = bandwidth)]
    pub(crate) pcie_gbps: Option<Bytes>,
    /// Copy in both directions at the same time
    #[arg(long)]
    pub(crate) duplex: bool,
    /// Saved tensors that offload-activations and checkpoint leave on the device: a size, or a share of all that wait for
    /// the backward pass
    #[arg(long, value_name = "SIZE|SHARE", allow_negative_numbers = true, default_value = "50%")]
    pub(crate) budget: Budget,
    /// Layers whose inputs the policies of papers move: the same ones for all, or those that the paper of each names
    #[arg(long = "move", value_name = "RULE", value_parser = choice::<Moves>(), default_value = "same")]
    pub(crate) moves: Moves,
    /// The setting of Dymem's paper: --gradients preallocated --workspace grow
    #[arg(long, conflicts_with_all = ["gradients", "workspace"])]
    pub(crate) paper: bool,
    /// Gradients of parameters: as recorded, or allocated before the step and kept
    #[arg(long, value_name = "RULE", value_parser = choice::<GradientRule>(), default_value = "recorded")]
    pub(crate) gradients: GradientRule,
    /// Bandwidth of the host's memory, in 10^9 bytes per second, in which host-optimizer makes its step
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = bandwidth, default_value = "50")]
    pub(crate) host_gbps: Bytes,
    /// Order of layers: as recorded, or depth first as Dymem has it, the branches of a fork as recorded or by reference
    /// count; both are hypothetical
    #[arg(long, value_name = "ORDER", value_parser = choice::<LayerOrder>(), default_value = "trace")]
    pub(crate) order: LayerOrder,
    /// Measured durations, which replace those of the model: a table `op,duration_us`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) durations: Option<PathBuf>,
    /// Workspaces of convolutions: recorded, none, at most a size (fixed:16MiB), or grow: as large as they can be in
    /// --capacity, or the device. A convolution with less than recorded takes 1.6 times as long
    #[arg(long, value_name = "RULE", default_value = "recorded")]
    pub(crate) workspace: WorkspaceRule,
    /// Also run 100 steps whose tensors are each varied at random by up to SHARE, and show how many need more memory
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = share_above_zero)]
    pub(crate) jitter: Option<f64>,
    /// SuperNeurons moves blocks only where memory is short, least recently used first
    #[arg(long, requires = "capacity")]
    pub(crate) tensor_cache: bool,
    /// SuperNeurons computes outputs of cheap layers again in the backward pass
    #[arg(long)]
    pub(crate) recompute: bool,
    /// Time that each planner may search, for example 5s or 2m
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) time: Duration,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answer")]
pub(crate) struct OffloadAnswerArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = OffloadFormat::Text)]
    pub(crate) format: OffloadFormat,
    /// Write the answer to a file, atomically
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write memory and fragmentation over time as CSV, for each policy and placement
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) series: Option<PathBuf>,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OffloadFormat {
    /// Human-readable
    Text,
    /// One indented document
    Json,
    /// One row for each policy and placement
    Csv,
}

choices! {
    LayerOrder {
        Trace => PossibleValue::new("trace").help("As recorded"),
        DepthFirst => PossibleValue::new("dfs").help("Depth first"),
        ReferenceCount => PossibleValue::new("refcount").help("Depth first, most references first"),
    }
}

choices! {
    Moves {
        Same => PossibleValue::new("same").help("The same layers for all policies"),
        Paper => PossibleValue::new("paper").help("Those that the paper of each policy names"),
    }
}

choices! {
    GradientRule {
        Recorded => PossibleValue::new("recorded").help("As recorded"),
        Preallocated => PossibleValue::new("preallocated").help("There for the whole step"),
    }
}

/// Reads a value of `--policy`.
pub(crate) fn policy(name: &str) -> Result<Selection<PolicyChoice>, String> {
    selection(name, || PolicyChoice::ALL.map(PolicyChoice::name).join(", "))
}

/// Reads a value of `--placement`.
fn placement(name: &str) -> Result<Selection<Placement>, String> {
    let known = || Placement::ONLINE.map(Placement::name).join(", ");
    selection(name, || format!("{} and the planners of `xmem plan`", known()))
}
