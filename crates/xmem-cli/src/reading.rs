//! Options for reading traces.

mod args;
mod error;

pub(crate) use args::ReadingArgs;
pub(crate) use error::ReadingFailure;

use crate::error::CliError;
use crate::global::Global;
use crate::progress::Progress;
use crate::{input, pool};
use std::num::NonZeroUsize;
use std::path::Path;
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

/// Reads a recording, and says how far it is.
pub(crate) fn job(path: &Path, args: &ReadingArgs, global: &Global) -> Result<Job, CliError> {
    let progress = Progress::over([path], global.verbosity());
    let observer = |stage| progress.stage(&input::name(path), stage);
    pool::run(args.threads, |threads| {
        Ok(Job::observed(path, &read_options(args, threads), &observer)?)
    })
}

/// True if a recording contradicts itself, or is withheld for another reason.
pub(crate) fn is_damaged(job: &Job) -> bool {
    job.profile().integrity.condition() >= Condition::Damaged
        || !job.diagnostics().withheld_reasons().is_empty()
}
