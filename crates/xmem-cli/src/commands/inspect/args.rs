//! Arguments of `xmem inspect`.

use crate::format::PlainFormat;
use crate::reading::ReadingArgs;
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  xmem inspect trace.json.gz\n  xmem inspect - --format json < trace.json\n  \
        xmem inspect trace.json.zst --redact shared.json.zst"
)]
pub(crate) struct InspectArgs {
    /// Trace file: JSON, plain or compressed with gzip or zstd; `-` for standard input
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: PathBuf,
    /// Write a copy for others to read, and show what is in it: it has base names instead of paths, and no
    /// notes, annotations and metadata of the script
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) redact: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub(crate) format: PlainFormat,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}
