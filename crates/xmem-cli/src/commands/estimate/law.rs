//! The memory of a graph's job as a function of the batch size: every size is acted and replayed.

use super::batches::BatchRange;
use super::question::Question;
use crate::error::CliError;
use crate::global::Verbosity;
use crate::progress::Progress;
use crate::terminal::note;
use crate::{estimate, pool};
use rayon::prelude::*;
use std::num::NonZeroU32;
use xmem::predict::STEADY_ITERATIONS;
use xmem::{Job, PredictedJob};
use xmem_estimate::GraphJob;
use xmem_studies::law::{JobLaw, LawPoint, LawSubject, LawSummary, LawTable, RecordedPart};

/// The law of a range.
pub(super) fn of(
    question: &Question<'_>,
    range: BatchRange,
    verbosity: Verbosity,
) -> Result<LawTable, CliError> {
    let values = LawTable::values_to_run(value(range.low), value(range.high));
    note(
        &format!("--law: {} batch sizes from {} to {}", values.len(), range.low, range.high),
        verbosity,
    );
    let progress = Progress::of_steps(values.len(), "batch sizes", verbosity);
    pool::run(None, |_| law(question, range, &values, &progress))
}

fn law(
    question: &Question<'_>,
    range: BatchRange,
    values: &[u64],
    progress: &Progress,
) -> Result<LawTable, CliError> {
    let point = |value: &u64| {
        let job = acted(question, *value)?;
        let predicted = question.estimate.predict(&job);
        let predicted = predicted.map_err(|error| estimate::failure(question.name, error))?;
        let point = LawPoint::of_run(*value, predicted.prediction());
        progress.advance();
        Ok((point, predicted.prediction().device().taken))
    };
    let points = values.par_iter().map(point).collect::<Result<Vec<_>, CliError>>()?;
    let device = &question.estimate.target().device;
    let subject = LawSubject {
        name: "batch".to_owned(),
        command: format!("xmem estimate {}", question.name),
        device: device.name.clone(),
        memory: device.memory,
        context: points.first().map_or(device.context, |(_, context)| *context),
        notes: vec!["from the graph of the model: nothing was run".to_owned()],
    };
    let points = points.into_iter().map(|(point, _)| point).collect();
    Ok(LawTable::of_runs(subject, points, summary(question, range)?))
}

/// How the sizes of blocks follow from the batch size, by those that double.
fn summary(question: &Question<'_>, range: BatchRange) -> Result<LawSummary, CliError> {
    let sizes: Vec<u64> = range.doublings().into_iter().map(value).collect();
    let jobs = sizes.par_iter().map(|value| acted(question, *value));
    let jobs = jobs.collect::<Result<Vec<Job>, _>>()?;
    let predict = |job| {
        let predicted = question.estimate.predict(job);
        predicted.map_err(|error| estimate::failure(question.name, error))
    };
    let predicted = jobs.par_iter().map(predict).collect::<Result<Vec<_>, CliError>>()?;
    let predictions = sizes.iter().copied().zip(predicted.iter().map(PredictedJob::prediction));
    let law = JobLaw::new(predictions, RecordedPart::Iterations, STEADY_ITERATIONS);
    // Sizes of which no two have most blocks in common are still known one by one.
    Ok(law.map(|law| law.summary()).unwrap_or_default())
}

fn acted(question: &Question<'_>, value: u64) -> Result<Job, CliError> {
    let size = u32::try_from(value).ok().and_then(NonZeroU32::new);
    question.acted(size, |_, run| Ok(GraphJob::analyzed(&run)))
}

fn value(size: NonZeroU32) -> u64 {
    size.get().into()
}
