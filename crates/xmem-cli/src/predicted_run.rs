//! A recording with the answer about it and its run, event by event.

use crate::error::CliError;
use crate::estimate::{self, EstimateArgs};
use crate::global::Global;
use crate::input;
use crate::progress::Progress;
use crate::reading::{ReadingArgs, read_options};
use std::num::NonZeroUsize;
use std::path::Path;
use xmem::predict::{SnapshotEnd, Timeline};
use xmem::{Answer, Device, Estimate, Iterations, Job};

/// The answer, and the run on a device with space for all.
pub(crate) struct PredictedRun {
    pub(crate) answer: Answer,
    pub(crate) timeline: Timeline,
}

/// The estimate on a device with the options of the command line.
pub(crate) fn estimate(
    device: Device,
    options: &EstimateArgs,
    iterations: Option<Iterations>,
) -> Result<Estimate, CliError> {
    let mut builder = options.builder(device)?;
    if let Some(iterations) = iterations {
        builder = builder.iterations(iterations);
    }
    let estimate = builder.build();
    estimate.check()?;
    Ok(estimate)
}

/// Reads a recording, unless its bytes were read already, and predicts its run.
pub(crate) fn predict(
    path: &Path,
    bytes: Option<&[u8]>,
    estimate: &Estimate,
    (reading, threads): (&ReadingArgs, NonZeroUsize),
    global: &Global,
) -> Result<PredictedRun, CliError> {
    let name = input::name(path);
    let progress = Progress::over([path], global.verbosity());
    let observer = |stage| progress.stage(&name, stage);
    let options = read_options(reading, threads);
    let job = match bytes {
        Some(bytes) => Job::from_bytes(bytes, &options)?,
        None => Job::observed(path, &options, &observer)?,
    };
    let failed = |error| estimate::failure(&name, error);
    let predicted = estimate.predict_observed(&job, &observer).map_err(failed)?;
    let answer = predicted.answer_observed(&observer);
    let timeline = predicted.timeline(SnapshotEnd::Job);
    Ok(PredictedRun { answer, timeline })
}
