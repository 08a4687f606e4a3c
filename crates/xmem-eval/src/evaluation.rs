//! Estimators, judged by many runs whose memory is known.
//!
//! The definitions are those of the xMem paper (Shi, Pezaros and Elkhatib, Middleware 2025, section 4.1) as its authors' program
//! computes them (`plot/plot.py` and the `evaluation_result.json` files of Stone-ResearchLife/xMem): an estimate is compared with
//! the peak of the run (first round), and the job is run again with only as much memory as was estimated (second round).
//!
//! Left to others: making runs and estimates, files, and tables for people.

mod anova;
mod columns;
mod configuration;
mod outcome;
mod rows;
mod statistics;
mod summary;

pub use anova::{FactorEffect, effects};
pub use columns::{EvaluationColumn, EvaluationValues};
pub use configuration::{Configuration, Grid, sample, shuffled};
pub use outcome::{EstimatedRun, MemoryByClass, Outcome, SecondRound, TrueRun, relative_error};
pub use rows::EvaluationRow;
pub use statistics::Spread;
pub use summary::{Conserved, OutOfMemoryCounts, Share, Summary};

use std::collections::{BTreeMap, BTreeSet};

/// Runs with what estimators said about them.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// What is evaluated, in words.
    pub title: String,
    /// Where the runs are from.
    pub truth: TruthSource,
    /// The names of the estimators.
    pub estimators: Vec<String>,
    /// The runs.
    pub runs: Vec<EvaluatedRun>,
    /// Jobs that an estimator could not estimate, or that could not be run.
    pub failures: Vec<EvaluationFailure>,
    /// The number of jobs from which these were drawn.
    pub of: u64,
}

/// Where the memory of runs is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruthSource {
    /// It was measured elsewhere.
    Readings,
    /// PyTorch's CUDA build ran on a virtual GPU.
    VirtualGpu,
    /// Jobs ran on a GPU, and its used memory was sampled.
    Gpu,
    /// Memory snapshots of the runs.
    Snapshots,
}

impl TruthSource {
    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Readings => "readings",
            Self::VirtualGpu => "virtual-gpu",
            Self::Gpu => "gpu",
            Self::Snapshots => "snapshots",
        }
    }
}

/// A job without a run, or without one of the estimates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationFailure {
    /// The job and the device.
    pub configuration: Configuration,
    /// The estimator; none if the job has no run.
    pub estimator: Option<String>,
    /// Why.
    pub reason: String,
}

/// A run, and the estimates of it.
#[derive(Clone, Debug)]
pub struct EvaluatedRun {
    /// The job and the device.
    pub configuration: Configuration,
    /// The run.
    pub truth: TrueRun,
    /// The estimates in the order of the estimators; none where one gave none.
    pub estimates: Vec<Option<EstimatedRun>>,
}

impl Evaluation {
    /// The figures of an estimator, by its place, over the runs that `chosen` picks.
    #[must_use]
    pub fn summary(&self, estimator: usize, chosen: impl Fn(&Configuration) -> bool) -> Summary {
        Summary::new(
            self.runs
                .iter()
                .filter(|run| chosen(&run.configuration))
                .filter_map(|run| Some((&run.truth, run.estimates[estimator].as_ref()?))),
        )
    }

    /// The factors of the runs.
    #[must_use]
    pub fn factors(&self) -> BTreeSet<&str> {
        self.runs
            .iter()
            .flat_map(|run| run.configuration.iter())
            .map(|(factor, _)| factor)
            .collect()
    }

    /// The values that a factor has in the runs, with the number of runs of each.
    #[must_use]
    pub fn values(&self, factor: &str) -> BTreeMap<&str, usize> {
        let mut values = BTreeMap::new();
        for run in &self.runs {
            if let Some(value) = run.configuration.value(factor) {
                *values.entry(value).or_default() += 1;
            }
        }
        values
    }

    /// The effect of each of `factors` on the error of an estimator: a one-way analysis of variance each. Factors with one
    /// value are left out.
    #[must_use]
    pub fn effects(&self, estimator: usize, factors: &[&str]) -> Vec<FactorEffect> {
        let errors: Vec<(&Configuration, f64)> = self
            .runs
            .iter()
            .filter_map(|run| {
                let outcome = run.estimates[estimator].as_ref()?.outcome(&run.truth);
                Some((&run.configuration, outcome.error?))
            })
            .collect();
        effects(&errors, factors)
    }
}
