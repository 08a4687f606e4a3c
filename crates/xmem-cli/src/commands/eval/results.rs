//! Answers of earlier evaluations, whose jobs need not be recorded again.

use super::error::EvalFailure;
use super::jobs::PlannedJob;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xmem::Bytes;
use xmem_eval::evaluation::{Configuration, EstimatedRun, EvaluationRow, TrueRun, TruthSource};
use xmem_view::EvaluatedRows;

/// What is known of jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    jobs: BTreeMap<Key, Known>,
}

/// A job and its device: the values of its factors, whatever their order, and the memory of the device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    factors: BTreeMap<String, String>,
    capacity: Bytes,
}

#[derive(Clone, Debug, Default)]
struct Known {
    truth: Option<TrueRun>,
    estimates: BTreeMap<String, EstimatedRun>,
}

impl Key {
    fn new(configuration: &Configuration, capacity: Bytes) -> Self {
        let factors = configuration.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { factors: factors.collect(), capacity }
    }
}

impl Results {
    /// Reads Parquet files of evaluations. Of a job in several files, the last one counts. Runs count whose memory is known
    /// from `truth`.
    pub(super) fn read(paths: &[PathBuf], truth: TruthSource) -> Result<Self, EvalFailure> {
        let mut results = Self::default();
        for path in paths {
            let EvaluatedRows { truth: source, rows } = read(path)?;
            for row in rows {
                results.add(row, source == truth.name());
            }
        }
        Ok(results)
    }

    fn add(&mut self, row: EvaluationRow, has_truth: bool) {
        let known = self.jobs.entry(Key::new(&row.configuration, row.truth.capacity)).or_default();
        if has_truth {
            known.truth = Some(row.truth);
        }
        known.estimates.insert(row.estimator, row.estimate);
    }

    fn of(&self, job: &PlannedJob<'_>) -> Option<&Known> {
        self.jobs.get(&Key::new(&job.configuration, job.device.memory))
    }

    /// The run of a job, if it is there.
    pub(super) fn truth(&self, job: &PlannedJob<'_>) -> Option<TrueRun> {
        self.of(job)?.truth
    }

    /// An estimate of a job, if it is there; with a second round if that is asked for.
    pub(super) fn estimate(
        &self,
        job: &PlannedJob<'_>,
        estimator: &str,
        second: bool,
    ) -> Option<EstimatedRun> {
        let estimate = *self.of(job)?.estimates.get(estimator)?;
        match second {
            true => (estimate.second.is_some() || estimate.out_of_memory).then_some(estimate),
            false => Some(EstimatedRun { second: None, ..estimate }),
        }
    }
}

fn read(path: &Path) -> Result<EvaluatedRows, EvalFailure> {
    let bytes = std::fs::read(path)
        .map_err(|source| EvalFailure::Read { path: path.to_owned(), source })?;
    xmem_view::evaluation_of_parquet(bytes)
        .map_err(|reason| EvalFailure::Results { path: path.to_owned(), reason })
}
