//! The memory of a graph's job as a function of the batch size: a law of acted runs.

use super::batches::BatchRange;
use super::error::EstimateGraphFailure;
use super::question::Question;
use crate::error::CliError;
use crate::{cudnn, estimate, output, pool};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use xmem::predict::STEADY_ITERATIONS;
use xmem::Job;
use xmem_estimate::GraphJob;
use xmem_report::json;
use xmem_studies::law::{JobLaw, LawSubject, LawTable, RecordedPart};

/// The share by which a law may be off about a run that it was not made from, before another size is run.
const CLOSE: f64 = 0.0005;

/// The most sizes that are run beside those that double.
const MOST: usize = 12;

/// Writes the law of a range; returns its greatest size.
pub(super) fn write(
    question: &Question<'_>,
    range: BatchRange,
    file: &Path,
) -> Result<u64, CliError> {
    let law = pool::run(None, |_| law(question, range))?;
    output::write(json::line(&json::LawDocument::new(&law)).as_bytes(), Some(file))?;
    Ok(u64::from(range.high.get()))
}

fn law(question: &Question<'_>, range: BatchRange) -> Result<LawTable, CliError> {
    let convolutions = cudnn::source(&question.args.estimate.cudnn)?;
    let device = &question.estimate.target().device;
    let subject = LawSubject {
        name: "batch".to_owned(),
        command: format!("xmem estimate {}", question.name),
        device: device.name.clone(),
        memory: device.memory,
        notes: vec!["from the graph of the model: nothing was run".to_owned()],
        ..LawSubject::default()
    };
    let mut jobs: BTreeMap<NonZeroU32, Job> = BTreeMap::new();
    let mut sizes = range.doublings();
    let mut extra = 0;
    loop {
        let run =
            |size: &NonZeroU32| question.acted(Some(*size), |_, run| Ok(GraphJob::analyzed(&run)));
        let new = sizes.par_iter().map(run).collect::<Result<Vec<_>, _>>()?;
        jobs.extend(sizes.iter().copied().zip(new));
        let predict = |(size, job): (&NonZeroU32, _)| {
            let predicted = question.estimate.predict(job);
            Ok((*size, predicted.map_err(|error| estimate::failure(question.name, error))?))
        };
        let predicted =
            jobs.par_iter().map(predict).collect::<Result<Vec<(NonZeroU32, _)>, CliError>>()?;
        let predictions = predicted.iter().map(|(size, job)| (value(*size), job.prediction()));
        let law = JobLaw::new(predictions, RecordedPart::Iterations, STEADY_ITERATIONS)
            .map_err(|reason| EstimateGraphFailure::NoLaw { reason })?;
        let known: Vec<u64> = law.values().collect();
        let law = law.with_convolutions((&*convolutions, device), &known);
        sizes = law.next(&law.check(), CLOSE).into_iter().filter_map(size).collect();
        sizes.retain(|size| !jobs.contains_key(size));
        sizes.truncate(MOST - extra);
        extra += sizes.len();
        if sizes.is_empty() {
            let listed = LawTable::values(&law);
            let law = law.with_convolutions((&*convolutions, device), &listed);
            let subject = LawSubject { context: law.context(), ..subject };
            return Ok(LawTable::new(&law, subject));
        }
    }
}

fn value(size: NonZeroU32) -> u64 {
    size.get().into()
}

fn size(value: u64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(value).ok()?)
}
