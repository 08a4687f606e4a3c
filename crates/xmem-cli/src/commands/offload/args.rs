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
use xmem_studies::offload::{Placement, WorkspaceRule};
use xmem_studies::offloading::{LayerOrder, PolicyChoice};

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] = &[
    "trace",
    "device",
    "policy",
    "placement",
    "capacity",
    "min_capacity",
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
    /// save-on-cpu; `none` is always there
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
    /// Order of layers: as recorded, or depth first as Dymem has it, which is hypothetical
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
