//! Arguments of readers of traces.

use crate::values::count;
use clap::Args;
use std::num::NonZeroUsize;
use xmem::Bytes;

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
