//! Arguments of `xmem diff`.

use crate::choice::{choice, choices};
use crate::device::DeviceArgs;
use crate::estimate::EstimateArgs;
use crate::reading::ReadingArgs;
use crate::values::share_or_size;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use xmem::Iterations;
use xmem_studies::difference::{DifferenceKey, GrowthLimit, PeakFigure};

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] =
    &["a", "b", "device", "capacity", "by", "format", "output", "top", "fail_over", "alloc_conf"];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Traces and snapshots need a device, which is that of both; answers in JSON have theirs, and roles only.\n\n\
        Examples:\n  \
        xmem diff main.json.gz branch.json.gz --device a100-40g\n  \
        xmem diff main.json.gz branch.json.gz --device a100-40g --by module\n  \
        xmem diff main.json.gz branch.json.gz --device t4-16g --fail-over 1% --format markdown\n  \
        xmem diff before.json after.json                      answers of `xmem replay --format json`\n\n\
        Exit code: 0 compared, and within --fail-over; 1 grew by more; 2 usage error; 3 unreadable; 4 the\n\
        verdict about one of them is withheld, or its recording is damaged."
)]
pub(crate) struct DiffArgs {
    /// The run before: a trace, a memory snapshot, or an answer of `xmem replay --format json`, plain or
    /// compressed with gzip or zstd; `-` for standard input
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) a: PathBuf,
    /// The run after
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) b: PathBuf,
    #[command(flatten)]
    pub(crate) answer: DiffAnswerArgs,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) estimate: EstimateArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Answer")]
pub(crate) struct DiffAnswerArgs {
    /// What the memory at the peak is compared by
    #[arg(long, value_name = "KEY", value_parser = choice::<DifferenceKey>(), default_value = DifferenceKey::Role.name())]
    pub(crate) by: DifferenceKey,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = DiffFormat::Text)]
    pub(crate) format: DiffFormat,
    /// Write the answer to a file, atomically
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Number of rows to list (default: 20; with json all)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) top: Option<usize>,
    /// Exit with 1 if B needs more than A by more than this: a share of A (1%) or a size (100MiB)
    #[arg(long, value_name = "LIMIT", allow_negative_numbers = true, value_parser = share_or_size::<GrowthLimit>)]
    pub(crate) fail_over: Option<GrowthLimit>,
    /// The peak that --fail-over is about
    #[arg(long, value_name = "PEAK", value_parser = choice::<PeakFigure>(), default_value = PeakFigure::Reserved.name(), requires = "fail_over")]
    pub(crate) figure: PeakFigure,
    /// Only these iterations of both: N for the first N, or A..B (counted from 0, B excluded)
    #[arg(long, value_name = "RANGE")]
    pub(crate) iterations: Option<Iterations>,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// Human-readable
    Text,
    /// One indented document
    Json,
    /// For the comment of a pull request
    Markdown,
    /// A page for a browser, in one file
    Html,
}

choices! {
    DifferenceKey by name {
        Role => "Parameter, activation, gradient, ...",
        Module => "Module path; counters of classes that shifted, and renamed classes, are matched",
        Line => "Python line of the allocation; numbers that shifted, and files that were renamed, are matched",
        Op => "Innermost operator",
    }
}

choices! {
    PeakFigure by name {
        Allocated => "torch.cuda.max_memory_allocated",
        Reserved => "torch.cuda.max_memory_reserved",
        Device => "Reserved and the context: the figure of nvidia-smi",
    }
}
