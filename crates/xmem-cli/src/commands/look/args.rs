//! Arguments of `xmem look`.

use crate::device::DeviceArgs;
use crate::estimate::EstimateArgs;
use crate::reading::ReadingArgs;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use xmem::Iterations;

/// The options that `-h` shows.
pub(crate) const SHORT_HELP: &[&str] =
    &["trace", "device", "capacity", "iterations", "alloc_conf", "torch"];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Keys: arrows move, + and - zoom, p goes to the peak, 1 to 5 choose by what memory is listed, tab \
        lists the blocks, / searches, ? explains all of them, q quits.\n\n\
        Examples:\n  \
        xmem look trace.json.gz --device a100-40g\n  \
        xmem look snapshot.pickle -d t4-16g --alloc-conf expandable_segments:True\n\n\
        Exit code: 0 success, 2 usage error or no terminal, 3 unreadable or not a trace, 4 the recording is\n\
        damaged, 130 or 143 ended by a signal."
)]
pub(crate) struct LookArgs {
    /// Trace, or memory snapshot of a GPU, plain or compressed with gzip or zstd; `-` for standard input
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: PathBuf,
    /// Only these iterations: N for the first N, or A..B (counted from 0, B excluded)
    #[arg(long, value_name = "RANGE")]
    pub(crate) iterations: Option<Iterations>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) estimate: EstimateArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}
