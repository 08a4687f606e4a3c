//! What several commands take.

use clap::{Args, ValueEnum};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use xmem::Bytes;

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
#[command(next_help_heading = "Convolutions")]
pub(crate) struct CudnnArgs {
    /// What knows their workspaces: auto (a cuDNN library that is found, else the built-in model), the
    /// path of a library or of a Python environment that has one, a folder with answers that it kept,
    /// model, or none for no workspaces (default: XMEM_CUDNN, else auto)
    #[arg(long, value_name = "WHAT", value_parser = CudnnSource::parse)]
    pub(crate) cudnn: Option<CudnnSource>,
    /// Folder in which the library's answers are kept, or off (default: xmem in the user's cache)
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cudnn_cache: Option<PathBuf>,
}

/// What knows the workspaces of convolutions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CudnnSource {
    /// A library that is found, else the model.
    Auto,
    /// The library there.
    At(PathBuf),
    /// The model.
    Model,
    /// Nothing: there are no workspaces.
    NoWorkspaces,
}

impl CudnnSource {
    /// Everything is one: what is not a word is a path.
    pub(crate) fn parse(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "" | "auto" => Self::Auto,
            "model" => Self::Model,
            "none" => Self::NoWorkspaces,
            path => Self::At(path.into()),
        })
    }
}

/// Form of an answer about many operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One document
    Json,
    /// One document a line, for each operation
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

/// A part of something.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    let fraction = text.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction));
    fraction.ok_or_else(|| "a part of the device's memory is a number from 0 to 1, like 0.8".into())
}
