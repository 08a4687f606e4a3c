//! Options for reading traces.

mod args;
mod error;

pub(crate) use args::ReadingArgs;
pub(crate) use error::ReadingFailure;

use std::num::NonZeroUsize;
use xmem::analyzer::integrity::Condition;
use xmem::{Job, ReadOptions};

/// Options for reading traces on as many threads.
pub(crate) fn read_options(args: &ReadingArgs, threads: NonZeroUsize) -> ReadOptions {
    let usual = ReadOptions::default();
    ReadOptions {
        threads: Some(threads),
        inflate_limit: args.max_input.unwrap_or(usual.inflate_limit),
        // Whoever names a size knows the file.
        ratio_limit: usual.ratio_limit.filter(|_| args.max_input.is_none()),
        ..usual
    }
}

/// True if a recording contradicts itself, or is withheld for another reason.
pub(crate) fn is_damaged(job: &Job) -> bool {
    job.profile().integrity.condition() >= Condition::Damaged
        || !job.diagnostics().withheld_reasons().is_empty()
}
