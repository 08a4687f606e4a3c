//! The small commands.

use super::{PlainFormat, ReadingArgs};
use clap::{Args, ValueHint};
use std::ffi::OsString;
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

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  xmem devices\n  xmem devices a100 4090\n  xmem devices --mig\n  xmem devices --format json | jq '.devices[].name'"
)]
pub(crate) struct DevicesArgs {
    /// Only these: a name, or a model (a100) with all its sizes
    #[arg(value_name = "NAME", conflicts_with = "mig")]
    pub(crate) names: Vec<String>,
    /// List the MIG slices
    #[arg(long)]
    pub(crate) mig: bool,
    /// Output format
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
    /// Shell to complete for
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of the process that becomes a recorded command ([`xmem_overlay::enter`]).
#[derive(Debug, Args)]
pub(crate) struct EnterOverlayArgs {
    /// File that says what is covered
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Command with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Arguments of the process that [`xmem_cudnn::Cudnn`] starts.
#[derive(Debug, Args)]
pub(crate) struct CudnnWorkerArgs {
    /// Path of the library
    #[arg(value_name = "LIBRARY")]
    pub(crate) library: PathBuf,
}
