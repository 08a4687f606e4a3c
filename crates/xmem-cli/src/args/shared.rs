//! What several commands take.

use clap::{Args, ValueEnum};
use std::num::NonZeroUsize;
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

/// Form of an answer that may be about many things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One document (a list of them for several traces)
    Json,
    /// One document a line, for each trace or each operation
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
