//! `xmem replay`.

use super::{AllocatorsArgs, CudnnArgs, ReadingArgs};
use clap::{ArgAction, Args, ValueEnum, ValueHint};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use xmem::predict::VaryingDimension;
use xmem::{Bytes, Iterations};

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xmem replay trace.json --device a100-40g\n  \
        xmem replay trace.json --capacity 24GiB --min-capacity\n  \
        xmem replay trace.json --device t4-16g --explain --top 20\n  \
        xmem replay trace.json --devices t4-16g,l4-24g,a100-40g\n  \
        xmem replay runs --device h100-80g --format jsonl -o answers.jsonl --skip-done\n  \
        xmem replay @traces.txt --devices a100-40g,h100-80g --format csv --jobs 4\n  \
        xmem replay trace.json --device rtx4060-8g --zero-grad pos0 --optimizer-impl fused\n  \
        xmem replay trace.json --device t4-16g --torch 2.6 --alloc-conf expandable_segments:True\n  \
        xmem replay trace.json --device t4-16g --snapshot run.pickle\n  \
        xmem replay snapshot.pickle --device t4-16g --alloc-conf expandable_segments:True\n  \
        xmem replay trace.json --device a100-40g --vary seq=64..128 --iterations 500\n  \
        zstdcat trace.json.zst | xmem replay - --device l4-24g --format json\n\n\
        Exit code: 0 fits, 1 does not fit, 2 usage error, 3 unreadable or not a trace, 4 verdict\n\
        withheld. With several answers the worst one decides: 3, then 2, 1, 4, 0. 130 or 143:\n\
        interrupted; lines already written are kept, and --skip-done continues after them."
)]
pub(crate) struct ReplayArgs {
    /// Traces (JSON), or memory snapshots of a GPU (pickles), plain or compressed with gzip or zstd;
    /// `-` for standard input. Also a
    /// folder (searched recursively for *.json, *.json.gz and *.json.zst), a glob pattern such as
    /// 'runs/**/*.json.gz', or @FILE with one path per line (@- for standard input)
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub(crate) traces: Vec<PathBuf>,
    /// Take every TRACE as the name of one file, whatever it looks like: no folder, pattern, list or
    /// standard input. For scripts that pass names of others
    #[arg(long, help_heading = "Reading")]
    pub(crate) literal_paths: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Several known GPUs, for example a100-40g,h100-80g: each trace is read once and answered for
    /// every GPU
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Device (at least one)",
          conflicts_with_all = ["device", "device_file", "capacity"])]
    pub(crate) devices: Vec<String>,
    #[command(flatten)]
    pub(crate) what_if: WhatIfArgs,
    #[command(flatten)]
    pub(crate) cudnn: CudnnArgs,
    #[command(flatten)]
    pub(crate) allocator: AllocatorsArgs,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
    #[command(flatten)]
    pub(crate) vary: VaryArgs,
    #[command(flatten)]
    pub(crate) many: ManyArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Device (at least one)")]
pub(crate) struct DeviceArgs {
    /// A known GPU, for example a100-40g or rtx3060-12g; `xmem devices` lists them
    #[arg(short, long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// A file that describes a GPU
    #[arg(long, value_name = "FILE", conflicts_with = "device", value_hint = ValueHint::FilePath)]
    pub(crate) device_file: Option<PathBuf>,
    /// Total device memory, for example 24GiB; replaces the capacity of --device or --device-file
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = Bytes::of_device, visible_alias = "budget")]
    pub(crate) capacity: Option<Bytes>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "What if")]
pub(crate) struct WhatIfArgs {
    /// Clear gradients at another place: pos0 just before backward, pos1 at the start of the
    /// iteration
    #[arg(long, value_name = "PLACE", value_enum)]
    pub(crate) zero_grad: Option<ZeroGrad>,
    /// Let zero_grad free gradients (true) or keep them as zeroed tensors (false)
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub(crate) set_to_none: Option<bool>,
    /// Implementation of the optimizer on the GPU (PyTorch's default: foreach)
    #[arg(long, value_name = "IMPL", value_enum)]
    pub(crate) optimizer_impl: Option<OptimizerKind>,
    /// CUBLAS_WORKSPACE_CONFIG of the job, for example :4096:8 (default: the value in the input,
    /// else PyTorch's default for the device)
    #[arg(long, value_name = "CONFIG", value_parser = cublas_workspace)]
    pub(crate) cublas_workspace_config: Option<xmem::Bytes>,
    /// Another number of ranks of a distributed job: world-size=16. Shards of FSDP, and what is made of them, have
    /// the sizes that they have with so many
    #[arg(long, value_name = "KEY=VALUE", value_parser = other_job)]
    pub(crate) what_if: Option<OtherJob>,
    /// When collectives, and other work on the streams of a virtual GPU, are complete. at-once is what was recorded; the
    /// range of the answer goes up to run-ahead
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Collectives::AtOnce)]
    pub(crate) collectives: Collectives,
    /// Parameters of --collectives bandwidth: nvlink, pcie and network in GB/s and one direction, host as the share
    /// of the recorded time that it takes without the recorder (network=50,host=0.3)
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = rate)]
    pub(crate) rates: Vec<(Rate, f64)>,
    /// Disable a rule of the CPU-to-GPU lowering (`xmem replay --explain` lists them); repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) no_rule: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answer")]
pub(crate) struct AnswerArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = ReplayFormat::Text)]
    pub(crate) format: ReplayFormat,
    /// Write the answer to a file, atomically; several answers in jsonl or csv are written line by
    /// line
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write the predicted run of a single trace as a memory snapshot, atomically, for PyTorch's
    /// viewer (https://pytorch.org/memory_viz)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) snapshot: Option<PathBuf>,
    /// Continue the snapshot after an out-of-memory, as on a device with enough memory
    #[arg(long, requires = "snapshot")]
    pub(crate) snapshot_past_oom: bool,
    /// Show the blocks that each rule dropped, resized, added and retimed
    #[arg(long)]
    pub(crate) explain: bool,
    /// Replay only these iterations: N for the first N, or A..B (counted from 0, B excluded). With
    /// --vary, N is the length of a run (default: 200)
    #[arg(long, value_name = "RANGE")]
    pub(crate) iterations: Option<Iterations>,
    /// Show all of a text answer: also the timeline, all roles and where the largest blocks come from
    #[arg(long)]
    pub(crate) full: bool,
    /// Show all notes of a text answer, not only the warnings
    #[arg(long)]
    pub(crate) notes: bool,
    /// Number of the largest blocks to list; equal ones count once in text
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = Self::TOP)]
    pub(crate) top: usize,
    /// Find the smallest device memory in which the job runs
    #[arg(long)]
    pub(crate) min_capacity: bool,
    /// Withhold the verdict at any doubt about the integrity of a trace, not only if it is damaged
    #[arg(long, conflicts_with = "lenient")]
    pub(crate) strict: bool,
    /// Answer for a damaged trace too, with a verdict that says so (would fit: exit code 4)
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Exit with 0 whatever the verdict is; errors still exit with their own code
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

impl AnswerArgs {
    pub(crate) const TOP: usize = 10;
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Lengths that vary")]
pub(crate) struct VaryArgs {
    /// Continue the job with batches of random sequence lengths (seq) or sizes (batch), and show how
    /// the peak depends on their order: a range with both ends (seq=64..128), with a step
    /// (seq=64..128:8), or a list (batch=4,8,16). Needs recorded iterations of two lengths
    #[arg(long, value_name = "DIM=SIZES")]
    pub(crate) vary: Option<VaryingDimension>,
    /// Number of random orders to simulate (default: 20)
    #[arg(long, value_name = "N", requires = "vary", allow_negative_numbers = true, value_parser = super::count::<NonZeroUsize>)]
    pub(crate) orders: Option<NonZeroUsize>,
    /// Seed of the first order; the others have the seeds after it (default: 0)
    #[arg(long, value_name = "N", requires = "vary", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Simulate one run with exactly these lengths, in this order
    #[arg(long, value_name = "LENGTH,...", requires = "vary", value_delimiter = ',',
          value_parser = super::count::<NonZeroU64>, conflicts_with_all = ["orders", "seed", "iterations"])]
    pub(crate) order: Vec<NonZeroU64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Many traces")]
pub(crate) struct ManyArgs {
    /// Number of traces to process, and hold in memory, at the same time (default: one per core)
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = super::count::<NonZeroUsize>)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Continue the file of --output: skip the traces that it already answers with the same
    /// settings; retry its errors
    #[arg(long, requires = "output", conflicts_with = "snapshot")]
    pub(crate) skip_done: bool,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayFormat {
    /// Human-readable; several answers as a table, in the order of the traces
    Text,
    /// One document; for several traces or devices an array, in the order of the traces
    Json,
    /// One document per line, in the order of completion
    Jsonl,
    /// One row per answer with the main figures, below a header, in the order of completion
    Csv,
}

/// A property of the job that is other than recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OtherJob {
    /// The number of ranks.
    WorldSize(u32),
}

/// Reads `--what-if`.
fn other_job(text: &str) -> Result<OtherJob, String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("expected KEY=VALUE, for example world-size=16".into());
    };
    match (key, value.parse()) {
        ("world-size", Ok(ranks)) if ranks > 0 => Ok(OtherJob::WorldSize(ranks)),
        ("world-size", _) => Err(format!("`{value}` is not a number of ranks")),
        _ => Err(format!("`{key}` is not known; what can be other is world-size")),
    }
}

/// When work on streams is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Collectives {
    /// At once, as recorded
    #[default]
    AtOnce,
    /// After durations that follow from the rates of the device and its links
    Bandwidth,
    /// When the host waits for it
    RunAhead,
}

/// A parameter of `--rates`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    Nvlink,
    Pcie,
    Network,
    Host,
}

/// Reads one of `--rates`.
fn rate(text: &str) -> Result<(Rate, f64), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, for example network=50")?;
    let rate = match key {
        "nvlink" => Rate::Nvlink,
        "pcie" => Rate::Pcie,
        "network" => Rate::Network,
        "host" => Rate::Host,
        _ => return Err(format!("`{key}` is not known; there are nvlink, pcie, network and host")),
    };
    match value.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= 1e6 => Ok((rate, number)),
        _ => Err(format!("`{value}` is not a number above 0 and up to 1000000")),
    }
}

/// The places of `zero_grad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ZeroGrad {
    /// Just before backward
    Pos0,
    /// At the start of the iteration
    Pos1,
}

/// Names of the optimizer implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OptimizerKind {
    /// Whole parameter lists at once
    Foreach,
    /// One kernel
    Fused,
    /// Parameter by parameter
    ForLoop,
}

/// The workspace size that a value of `CUBLAS_WORKSPACE_CONFIG` requests. PyTorch ignores a value
/// that it cannot parse; here it is an error.
fn cublas_workspace(value: &str) -> Result<xmem::Bytes, String> {
    xmem::orchestrator::parse_cublas_workspace_config(value)
        .ok_or_else(|| "expected `:KiB:count`, for example :4096:8 or :0:0".to_owned())
}
