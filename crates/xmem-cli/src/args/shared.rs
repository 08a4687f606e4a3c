//! Arguments that several commands share.

use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use xmem::Bytes;
use xmem_cudnn::SourceChoice;

#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadingArgs {
    /// Reject inputs with more text than this (default: 64GiB, and 250 times the size of a compressed
    /// file)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, alias = "inflate-limit")]
    pub(crate) max_input: Option<Bytes>,
    /// Number of threads per trace (default: one per core)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count::<NonZeroUsize>)]
    pub(crate) threads: Option<NonZeroUsize>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Convolutions")]
pub(crate) struct CudnnArgs {
    /// Source of the workspace sizes: auto (a cuDNN library if one is found, else the built-in
    /// model), the path of a library or of a Python environment that contains one, a folder with
    /// cached answers, model, or none for no workspaces (default: XMEM_CUDNN, else auto)
    #[arg(long, value_name = "SOURCE")]
    pub(crate) cudnn: Option<SourceChoice>,
    /// Folder in which answers of the library are cached, or off (default: ~/.cache/xmem)
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cudnn_cache: Option<PathBuf>,
}

/// The output format of an answer about many operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable
    Text,
    /// One document
    Json,
    /// One document per line, for each operation
    Jsonl,
}

/// The output format of any other answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    /// Human-readable
    Text,
    /// One indented document
    Json,
}

/// Parses a number from 1 up.
pub(crate) fn count<T: FromStr>(text: &str) -> Result<T, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().map_err(|_| match is_number {
        true if text.bytes().any(|byte| byte != b'0') => "the number is too large".to_owned(),
        _ => "expected a whole number from 1 up".to_owned(),
    })
}

/// Parses a fraction from 0 to 1.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    let fraction = text.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction));
    fraction.ok_or_else(|| "expected a number from 0 to 1, for example 0.8".into())
}
