//! What can be said on the command line. Parsing does nothing else.

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use xmem::{Bytes, Iterations, TorchVersion};

/// How much GPU memory does a PyTorch training job need, when, and because of what?
///
/// xmem reads the CPU profiler trace of a job, turns it into what the same job asks of a GPU, and
/// replays that through an exact model of PyTorch's CUDA caching allocator.
#[derive(Debug, Parser)]
#[command(
    name = "xmem",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Examples:\n  \
        xmem replay trace.json.gz --device rtx3060-12g   will the job fit on this GPU?\n  \
        xmem inspect trace.json.gz                       what is in this trace?\n  \
        xmem devices                                     which GPUs are known?\n\n\
        Record a trace with torch.profiler on the CPU (profile_memory=True, record_shapes=True, \
        with_stack=True) and export_chrome_trace."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Say more on standard error: time taken by each stage; twice for everything
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "quiet")]
    verbose: u8,
    /// Say less: no progress, and of a text answer only the verdict
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Stages,
    Everything,
}

impl Global {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, 1) => Verbosity::Stages,
            (false, _) => Verbosity::Everything,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Estimate a job's GPU memory from its CPU trace, and judge whether it fits
    Replay(Box<ReplayArgs>),
    /// Show what is in a trace, and what is missing from it
    Inspect(InspectArgs),
    /// List the known devices
    Devices(DevicesArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xmem replay trace.json --device a100-40g\n  \
        xmem replay trace.json --capacity 24GiB --min-capacity\n  \
        xmem replay trace.json --device t4-16g --explain --top 20\n  \
        xmem replay runs/*.json.gz --device h100-80g --format jsonl -o answers.jsonl\n  \
        xmem replay trace.json --device rtx4060-8g --zero-grad pos0 --optimizer-impl fused\n  \
        zstdcat trace.json.zst | xmem replay - --device l4-24g --format json\n\n\
        Exit code: 0 fits, 1 does not fit, 2 wrong usage, 3 unreadable or not a trace, 4 verdict\n\
        withheld. With several traces the worst decides: 3 before 2 before 1 before 4 before 0."
)]
pub(crate) struct ReplayArgs {
    /// Trace files: JSON, plain or compressed with gzip or zstd; `-` is standard input
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) what_if: WhatIfArgs,
    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
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
    /// PyTorch version that will run on the GPU, like 2.11
    #[arg(long, value_name = "VERSION", value_parser = str::parse::<TorchVersion>)]
    pub(crate) torch: Option<TorchVersion>,
    /// Switch a rule of the CPU-to-GPU lowering off (--explain names them); repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) no_rule: Vec<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answer")]
pub(crate) struct AnswerArgs {
    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write the answer to a file, whole or not at all
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Show what each rule dropped, resized, added and retimed
    #[arg(long)]
    pub(crate) explain: bool,
    /// Only these iterations: N for the first N, or A..B counted from 0 without B
    #[arg(long, value_name = "RANGE")]
    pub(crate) iterations: Option<Iterations>,
    /// How many of the largest blocks to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Find the smallest device memory in which the job runs
    #[arg(long)]
    pub(crate) min_capacity: bool,
    /// Exit with 0 whatever the verdict; errors still fail
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadingArgs {
    /// Refuse compressed traces that inflate to more than this
    #[arg(long, value_name = "SIZE", default_value = "64GiB")]
    pub(crate) inflate_limit: Bytes,
    /// Threads that read (default: one per core)
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  xmem inspect trace.json.gz\n  xmem inspect - --format json < trace.json"
)]
pub(crate) struct InspectArgs {
    /// Trace file: JSON, plain or compressed with gzip or zstd; `-` is standard input
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: PathBuf,
    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  xmem devices\n  xmem devices --format json | jq '.devices[].name'"
)]
pub(crate) struct DevicesArgs {
    /// Form of the answer
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  xmem completions bash > ~/.local/share/bash-completion/completions/xmem\n  \
        xmem completions zsh > ~/.zfunc/_xmem"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Form of a replay's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One indented document (a list of them for several traces)
    Json,
    /// One document a line, one line a trace
    Jsonl,
}

/// Form of any other answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    /// For people
    Text,
    /// One indented document
    Json,
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
