//! Arguments of `xmem replay`.

use crate::allocator::AllocatorsArgs;
use crate::cudnn::CudnnArgs;
use crate::device::{self, DeviceArgs};
use crate::reading::ReadingArgs;
use crate::shard::Shard;
use crate::values::{Offered, count};
use crate::what_if::WhatIfArgs;
use clap::{Args, ValueEnum, ValueHint};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use xmem::Iterations;
use xmem::predict::VaryingDimension;
use xmem_report::lines::LineFormat;

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] = &[
    "traces",
    "device",
    "capacity",
    "devices",
    "alloc_conf",
    "torch",
    "format",
    "output",
    "full",
    "notes",
    "explain",
    "min_capacity",
    "tune",
    "vary",
];

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
        xmem replay runs --device h100-80g --shard 3/64 --format jsonl -o answers-3.jsonl --skip-done\n  \
        xmem replay trace.json --device rtx4060-8g --zero-grad pos0 --optimizer-impl fused\n  \
        xmem replay trace.json --device t4-16g --torch 2.6 --alloc-conf expandable_segments:True\n  \
        xmem replay trace.json --device t4-16g --snapshot run.pickle\n  \
        xmem replay snapshot.pickle --device t4-16g --alloc-conf expandable_segments:True\n  \
        xmem replay trace.json --device t4-16g --tune\n  \
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
    /// 'runs/**/*.json.gz', @FILE with one path per line (@- for standard input), or the address of an object or
    /// of a prefix in an object store: s3://BUCKET/PREFIX, gs://, az://
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::AnyPath)]
    pub(crate) traces: Vec<PathBuf>,
    /// Treat each TRACE as a literal path (no folders, globs, lists or stdin), for scripts that pass names
    /// from elsewhere
    #[arg(long, help_heading = "Reading")]
    pub(crate) literal_paths: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Several known GPUs, for example a100-40g,h100-80g: each trace is read once and answered for
    /// every GPU
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help_heading = "Device (at least one)",
          value_parser = Offered::new(device::offered), hide_possible_values = true,
          conflicts_with_all = ["device", "device_file", "capacity"])]
    pub(crate) devices: Vec<String>,
    #[command(flatten)]
    pub(crate) what_if: WhatIfArgs,
    #[command(flatten)]
    pub(crate) cudnn: CudnnArgs,
    #[command(flatten)]
    pub(crate) allocator: AllocatorsArgs,
    /// Replay the job with other settings of the allocator (and, from a recording of a CPU, of optimizer and zero_grad), and
    /// show those with which it needs least
    #[arg(long, help_heading = "Answer", conflicts_with_all = ["vary", "snapshot", "iterations", "explain", "skip_done"])]
    pub(crate) tune: bool,
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
#[command(next_help_heading = "Answer")]
pub(crate) struct AnswerArgs {
    /// Format
    #[arg(short, long, value_enum, default_value_t = ReplayFormat::Text)]
    pub(crate) format: ReplayFormat,
    /// Write the answer to a file, atomically; several answers in jsonl or csv line by line, in parquet to a folder or an
    /// address
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
    #[arg(long, value_name = "N", requires = "vary", allow_negative_numbers = true, value_parser = count::<NonZeroUsize>)]
    pub(crate) orders: Option<NonZeroUsize>,
    /// Seed of the first order; the others have the seeds after it (default: 0)
    #[arg(long, value_name = "N", requires = "vary", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Simulate one run with exactly these lengths, in this order
    #[arg(long, value_name = "LENGTH,...", requires = "vary", value_delimiter = ',',
          value_parser = count::<NonZeroU64>, conflicts_with_all = ["orders", "seed", "iterations"])]
    pub(crate) order: Vec<NonZeroU64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Many traces")]
pub(crate) struct ManyArgs {
    /// Number of traces to process, and hold in memory, at the same time (default: one per core)
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = count::<NonZeroUsize>)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Continue the file, folder or address of --output: skip the traces that it already answers with the same
    /// settings; retry its errors
    #[arg(long, requires = "output", conflicts_with = "snapshot")]
    pub(crate) skip_done: bool,
    /// Process one part of the traces, for example 3/64, chosen by their names as given: machines that run the same
    /// command with each part process every trace once
    #[arg(long, value_name = "I/N", conflicts_with_all = ["snapshot", "tune", "vary"])]
    pub(crate) shard: Option<Shard>,
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
    /// The rows of csv as Parquet files, in a folder or below an address (s3://BUCKET/PREFIX)
    Parquet,
}

impl ReplayFormat {
    /// The form of lines, if there is one for each answer.
    pub(crate) fn lines(self) -> Option<LineFormat> {
        match self {
            Self::Text | Self::Json | Self::Parquet => None,
            Self::Jsonl => Some(LineFormat::Json),
            Self::Csv => Some(LineFormat::Csv),
        }
    }
}
