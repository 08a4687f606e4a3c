//! `xmem replay`.

use super::{AllocatorsArgs, CudnnArgs, ReadingArgs};
use clap::{ArgAction, Args, ValueEnum, ValueHint};
use std::num::NonZeroUsize;
use std::path::PathBuf;
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
        zstdcat trace.json.zst | xmem replay - --device l4-24g --format json\n\n\
        Exit code: 0 fits, 1 does not fit, 2 wrong usage, 3 unreadable or not a trace, 4 verdict\n\
        withheld. With several answers the worst decides: 3 before 2 before 1 before 4 before 0.\n\
        130 or 143: interrupted; lines that are written stay, and --skip-done goes on from there."
)]
pub(crate) struct ReplayArgs {
    /// Trace files: JSON, plain or compressed with gzip or zstd; `-` is standard input. Also a
    /// folder (all of *.json, *.json.gz and *.json.zst in it and below), a pattern like
    /// 'runs/**/*.json.gz', or @FILE with a path a line (@- for standard input)
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Several known GPUs, like a100-40g,h100-80g: the trace is read once, and there is an answer
    /// for each
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
    pub(crate) many: ManyArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Device (at least one)")]
pub(crate) struct DeviceArgs {
    /// A known GPU, like a100-40g or rtx3060-12g; `xmem devices` lists them
    #[arg(short, long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// A GPU described in a file of your own
    #[arg(long, value_name = "FILE", conflicts_with = "device", value_hint = ValueHint::FilePath)]
    pub(crate) device_file: Option<PathBuf>,
    /// Total device memory, like 24GiB; together with a device, instead of its own
    #[arg(long, value_name = "SIZE")]
    pub(crate) capacity: Option<Bytes>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "What if")]
pub(crate) struct WhatIfArgs {
    /// Gradients were cleared elsewhere: pos0 just before backward, pos1 at the iteration's start
    #[arg(long, value_name = "PLACE", value_enum)]
    pub(crate) zero_grad: Option<ZeroGrad>,
    /// zero_grad dropped gradients (true) or kept their memory (false)
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub(crate) set_to_none: Option<bool>,
    /// How the optimizer runs on the GPU (PyTorch's default there: foreach)
    #[arg(long, value_name = "IMPL", value_enum)]
    pub(crate) optimizer_impl: Option<OptimizerKind>,
    /// CUBLAS_WORKSPACE_CONFIG of the job, like :4096:8 (default: what the input names, else
    /// PyTorch's for the device)
    #[arg(long, value_name = "CONFIG", value_parser = cublas_workspace)]
    pub(crate) cublas_workspace_config: Option<xmem::Bytes>,
    /// Switch a rule of the CPU-to-GPU lowering off (--explain names them); repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) no_rule: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answer")]
pub(crate) struct AnswerArgs {
    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = ReplayFormat::Text)]
    pub(crate) format: ReplayFormat,
    /// Write the answer to a file, whole or not at all; several answers in jsonl or csv are written
    /// line by line
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write the predicted run of a single trace as a memory snapshot, whole or not at all:
    /// PyTorch's viewers open it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) snapshot: Option<PathBuf>,
    /// Where memory runs out, the snapshot goes on as on a device with room for all
    #[arg(long, requires = "snapshot")]
    pub(crate) snapshot_past_oom: bool,
    /// Show what each rule dropped, resized, added and retimed
    #[arg(long)]
    pub(crate) explain: bool,
    /// Only these iterations: N for the first N, or A..B counted from 0 without B
    #[arg(long, value_name = "RANGE")]
    pub(crate) iterations: Option<Iterations>,
    /// How many of the largest blocks to list
    #[arg(long, value_name = "N", default_value_t = Self::TOP)]
    pub(crate) top: usize,
    /// Find the smallest device memory in which the job runs
    #[arg(long)]
    pub(crate) min_capacity: bool,
    /// Exit with 0 whatever the verdict; errors still fail
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

impl AnswerArgs {
    pub(crate) const TOP: usize = 10;
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Many traces")]
pub(crate) struct ManyArgs {
    /// Traces at work at the same time, and so in memory (default: one per core)
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Go on with the file of --output: what it answers already, with the same settings, is not done
    /// again; errors in it are tried again
    #[arg(long, requires = "output", conflicts_with = "snapshot")]
    pub(crate) skip_done: bool,
}

/// Form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayFormat {
    /// For people; several answers as a table, in the order of the traces
    Text,
    /// One document; a list of them for several traces or devices, in the order of the traces
    Json,
    /// One document a line, in the order in which the traces are done
    Jsonl,
    /// The main figures as a row, below a header; in the order in which the traces are done
    Csv,
}

/// Names of the places of `zero_grad`.
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

/// The workspace that a value of `CUBLAS_WORKSPACE_CONFIG` asks for. PyTorch would go on with its
/// default where there is nothing in it; here it is a slip.
fn cublas_workspace(value: &str) -> Result<xmem::Bytes, String> {
    xmem::parse_cublas_workspace_config(value)
        .ok_or_else(|| "it has no `:KiB:count`, like :4096:8 or :0:0".to_owned())
}
