//! Arguments of `xmem validate`.

use crate::device::DeviceArgs;
use crate::estimate::EstimateArgs;
use crate::format::PlainFormat;
use crate::reading::ReadingArgs;
use crate::values::share;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] =
    &["trace", "snapshot", "device", "capacity", "tolerance", "top", "format"];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        xmem validate trace.json.gz --snapshot snapshot.pickle --device rtx3060-12g\n  \
        xmem validate trace.json.gz --snapshot snapshot.pickle -d a100-40g --top 40\n  \
        xmem validate trace.json.gz --snapshot snapshot.pickle -d a100-40g --tolerance 0.01\n  \
        xmem validate trace.json.gz --snapshot snapshot.pickle -d a100-40g --figure curves.svg\n\n\
        Record the snapshot on the GPU: torch.cuda.memory._record_memory_history() before the job,\n\
        torch.cuda.memory._dump_snapshot(path) after it.\n\n\
        Exit code: 0 peak reserved is within the tolerance, 1 it is not, 2 usage error, 3 unreadable,\n\
        4 the snapshot contradicts itself"
)]
pub(crate) struct ValidateArgs {
    /// Trace file: JSON, plain or compressed with gzip or zstd; `-` for standard input
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: PathBuf,
    /// Memory snapshot of the same job on the GPU: a pickle, plain or compressed with gzip or zstd
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) snapshot: PathBuf,
    /// Index of the recorded device
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 0)]
    pub(crate) device_index: u32,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) estimate: EstimateArgs,
    /// Relative error of peak reserved up to which the exit code is 0 (0.01, or 1%)
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, default_value_t = 0.05, value_parser = share,
          help_heading = "Answer")]
    pub(crate) tolerance: f64,
    /// Number of kinds of differences to list
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 10,
        help_heading = "Answer"
    )]
    pub(crate) top: usize,
    /// Write both curves of memory over time to this file, as an SVG picture
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath, help_heading = "Answer")]
    pub(crate) figure: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text, help_heading = "Answer")]
    pub(crate) format: PlainFormat,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}
