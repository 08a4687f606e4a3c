//! The memory of the job as a function of its number, by the recordings of some values.

use super::error::FitFailure;
use super::recordings::Recordings;
use super::template::{Ranks, Template};
use crate::pool;
use std::num::NonZeroU32;
use xmem::{Job, ReadOptions};
use xmem_studies::fit::{Figures, FitAnswer, LargestWith, Recorder as _, Variant};
use xmem_studies::law::{JobLaw, LawSubject, LawTable, LawWith, RecordedPart};

/// The share by which a law may be off about a recording that it was not made from, before another value is recorded.
const CLOSE: f64 = 0.005;

/// The most values that are recorded for the law alone, beside the least and the greatest.
const MAX_EXTRA: usize = 8;

/// The least values that are tried before the law begins where the search did: a batch of one, of two, …
const DOUBLINGS: u32 = 4;

/// Checks that the arguments go with a law.
pub(super) fn check(template: &Template, devices: usize) -> Result<(), FitFailure> {
    if template.ranks == Some(Ranks::Varied) {
        return Err(FitFailure::LawOfRanks);
    }
    match (&template.name, devices) {
        (None, _) => Err(FitFailure::LawWithoutNumber),
        (Some(_), 1) => Ok(()),
        (Some(_), count) => Err(FitFailure::LawOfSeveral { count }),
    }
}

/// Adds the law to what was found: from `low` to the greatest value that was recorded, or to `high`. Further values are recorded
/// until the law holds.
pub(super) fn add(
    found: &mut FitAnswer,
    recordings: &mut Recordings<'_>,
    (low, high): (u64, Option<u64>),
) {
    let Some(name) = found.option.as_ref().map(|option| option.name.clone()) else { return };
    record_ends(recordings, low, high);
    let subject = LawSubject {
        name,
        command: found.command.clone(),
        device: found.device.name.clone(),
        memory: found.device.memory,
        notes: found.notes.clone(),
        ..LawSubject::default()
    };
    let mut extra = 0;
    loop {
        recordings.read(&[]);
        let is_last = extra >= MAX_EXTRA || !recordings.has_time();
        let result = recordings.with_law(&[], |law| {
            let law = recordings.asked(law, &recordings.values(&[]));
            let mut next = law.next(&law.check(), CLOSE);
            next.retain(|value| !is_last && !recordings.known.contains_key(&plain(*value)));
            next.truncate(recordings.side_by_side());
            match next.is_empty() {
                false => Step::Record(next.into_iter().map(plain).collect()),
                true => {
                    let values = LawTable::values(&law);
                    let law = recordings.asked(law, &values);
                    let subject = LawSubject { context: law.context(), ..subject.clone() };
                    Step::Done(Box::new(pool::run(None, |_| LawTable::new(&law, subject))))
                }
            }
        });
        match result {
            Ok(Step::Record(values)) => {
                extra += values.len();
                drop(recordings.record(&values));
            }
            Ok(Step::Done(law)) => {
                found.law = Some(law.and_with(with(found)));
                return;
            }
            Err(reason) => {
                found.notes.push(format!("no law was made: {reason}"));
                return;
            }
        }
    }
}

/// The recordings with measures whose largest value was looked for.
fn with(found: &FitAnswer) -> Vec<LawWith> {
    let needs = |largest: &LargestWith| {
        // Without those that seemed to fit, and ran out of memory later.
        let is_right = |figures: &Figures| figures.fits || figures.needs > found.room;
        let points = largest.found.points.iter().filter(|(_, figures)| is_right(figures));
        points.map(|(value, figures)| (*value, figures.needs)).collect()
    };
    let of = |largest: &LargestWith| LawWith {
        measures: found.names(&largest.measures),
        gpus: found.gpus(&largest.measures).map_or(1, NonZeroU32::get),
        needs: needs(largest),
    };
    found.largest.iter().filter(|largest| !largest.measures.is_empty()).map(of).collect()
}

enum Step {
    Record(Vec<Variant>),
    Done(Box<LawTable>),
}

fn plain(value: u64) -> Variant {
    Variant::with(Some(value), Vec::new())
}

/// Records the least value with which the job can be recorded, and the greatest if it is given.
fn record_ends(recordings: &mut Recordings<'_>, low: u64, high: Option<u64>) {
    let least_known = recordings.values(&[]).into_iter().min().unwrap_or(u64::MAX);
    let mut ends: Vec<Variant> = high.map(plain).into_iter().collect();
    for doubling in 0..DOUBLINGS {
        let value = low << doubling;
        if value < least_known {
            ends.insert(0, plain(value));
        }
        if ends.is_empty() || !recordings.has_time() {
            return;
        }
        let known = recordings.record(&ends);
        if value >= least_known || known[0].is_ok() {
            return;
        }
        ends.clear();
    }
}

impl Recordings<'_> {
    /// The values that were recorded with some changes.
    pub(super) fn values(&self, measures: &[usize]) -> Vec<u64> {
        let recorded = self
            .known
            .iter()
            .filter(|(variant, known)| variant.measures == measures && known.is_ok());
        recorded.filter_map(|(variant, _)| variant.value).collect()
    }

    /// Reads the recordings with some changes that were not read yet, as far as they can be read.
    pub(super) fn read(&mut self, measures: &[usize]) {
        for value in self.values(measures) {
            let variant = Variant::with(Some(value), measures.to_vec());
            if self.read.contains_key(&variant) {
                continue;
            }
            match Job::from_path(self.maker.trace_of(&variant), &ReadOptions::default()) {
                Ok(job) => drop(self.read.insert(variant, job)),
                Err(error) => tracing::debug!(%error, value, "a recording is not read for the law"),
            }
        }
    }

    /// Gives the law of the recordings with some changes that were read to `work`.
    pub(super) fn with_law<T>(
        &self,
        measures: &[usize],
        work: impl FnOnce(JobLaw<'_>) -> T,
    ) -> Result<T, String> {
        let estimate = self.maker.estimate().build();
        let mut predicted = Vec::new();
        for (variant, job) in self.read.iter().filter(|(variant, _)| variant.measures == measures) {
            let value = variant.value.unwrap_or_default();
            predicted.push((value, estimate.predict(job).map_err(|error| error.to_string())?));
        }
        let predictions = predicted.iter().map(|(value, job)| (*value, job.prediction()));
        let part = match self.maker.whole {
            true => RecordedPart::Whole,
            false => RecordedPart::Iterations,
        };
        let law = JobLaw::new(predictions, part, self.maker.iterations);
        Ok(work(law.map_err(|error| error.to_string())?))
    }

    /// The law with the plans of the job's convolutions with some values, by the library that it was recorded with.
    fn asked<'p>(&self, law: JobLaw<'p>, values: &[u64]) -> JobLaw<'p> {
        match &self.cudnn {
            Some(library) => law.with_convolutions((library, self.maker.device), values),
            None => law,
        }
    }
}
