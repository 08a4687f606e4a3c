//! The output format of commands with a short answer.

use clap::ValueEnum;

/// The output format of any other answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlainFormat {
    /// Human-readable
    Text,
    /// One indented document
    Json,
}
