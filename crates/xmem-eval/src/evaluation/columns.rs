//! An evaluation as columns, for tables: a row for each estimate of each job.

use super::{EstimatedRun, EvaluatedRun, Evaluation, Outcome};
use std::time::Duration;
use xmem::Bytes;

/// The names of the columns; the others are factors.
pub(super) mod names {
    pub(in super::super) const PEAK: &str = "peak_bytes";
    pub(in super::super) const OUT_OF_MEMORY: &str = "out_of_memory";
    pub(in super::super) const CAPACITY: &str = "capacity_bytes";
    pub(in super::super) const ESTIMATOR: &str = "estimator";
    pub(in super::super) const MEMORY: &str = "memory_bytes";
    pub(in super::super) const RESERVE: &str = "reserve_bytes";
    pub(in super::super) const LOW: &str = "low_bytes";
    pub(in super::super) const HIGH: &str = "high_bytes";
    pub(in super::super) const ESTIMATED_OUT_OF_MEMORY: &str = "estimated_out_of_memory";
    pub(in super::super) const ERROR: &str = "error";
    pub(in super::super) const SIGNED_ERROR: &str = "signed_error";
    pub(in super::super) const SECOND_OUT_OF_MEMORY: &str = "second_out_of_memory";
    pub(in super::super) const SECOND_ERROR: &str = "second_error";
    pub(in super::super) const USABLE: &str = "usable";
    pub(in super::super) const RUNTIME: &str = "runtime_s";

    /// All of them, in the order of the columns.
    pub(in super::super) const ALL: [&str; 15] = [
        PEAK,
        OUT_OF_MEMORY,
        CAPACITY,
        ESTIMATOR,
        MEMORY,
        RESERVE,
        LOW,
        HIGH,
        ESTIMATED_OUT_OF_MEMORY,
        ERROR,
        SIGNED_ERROR,
        SECOND_OUT_OF_MEMORY,
        SECOND_ERROR,
        USABLE,
        RUNTIME,
    ];
}

/// A column of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationColumn {
    /// Its name.
    pub name: String,
    /// A value for each row.
    pub values: EvaluationValues,
}

/// The values of a column; none where a row has none.
#[derive(Clone, Debug, PartialEq)]
pub enum EvaluationValues {
    /// Whole numbers.
    Integers(Vec<Option<i64>>),
    /// Fractions and seconds.
    Numbers(Vec<Option<f64>>),
    /// True or false.
    Truths(Vec<Option<bool>>),
    /// Texts.
    Texts(Vec<Option<String>>),
}

impl EvaluationValues {
    /// The number of rows.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "whether there are rows is asked of the evaluation"
    )]
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Truths(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// The value of a row as text; empty if it is missing.
    #[must_use]
    pub fn text(&self, row: usize) -> String {
        fn text(value: &Option<impl ToString>) -> String {
            value.as_ref().map(ToString::to_string).unwrap_or_default()
        }
        match self {
            Self::Integers(values) => text(&values[row]),
            Self::Numbers(values) => text(&values[row]),
            Self::Truths(values) => text(&values[row]),
            Self::Texts(values) => text(&values[row]),
        }
    }

    /// Texts, or whole numbers if all of them are.
    fn of_factor(values: Vec<Option<String>>) -> Self {
        let number = |text: &String| text.parse::<i64>().ok().filter(|n| n.to_string() == *text);
        match values.iter().flatten().all(|text| number(text).is_some()) {
            true => Self::Integers(values.iter().map(|text| number(text.as_ref()?)).collect()),
            false => Self::Texts(values),
        }
    }
}

impl Evaluation {
    /// The columns, of one length: the factors of the jobs, then the run, the estimate and what became of it. Names end in the
    /// unit, `_bytes` or `_s`; errors are fractions of the peak.
    #[must_use]
    pub fn columns(&self) -> Vec<EvaluationColumn> {
        let rows = self.rows();
        let of_factors = self.factors().into_iter().map(|factor| {
            let value = |row: &Row<'_>| row.run.configuration.value(factor).map(str::to_owned);
            column(factor, EvaluationValues::of_factor(each(&rows, value)))
        });
        let bytes = |name, of: fn(&Row<'_>) -> Option<Bytes>| {
            column(name, EvaluationValues::Integers(each(&rows, |row| of(row).map(integer))))
        };
        let numbers = |name, of: fn(&Row<'_>) -> Option<f64>| {
            column(name, EvaluationValues::Numbers(each(&rows, of)))
        };
        let truths = |name, of: fn(&Row<'_>) -> Option<bool>| {
            column(name, EvaluationValues::Truths(each(&rows, of)))
        };
        let of_rows = [
            bytes(names::PEAK, |row| Some(row.run.truth.peak)),
            truths(names::OUT_OF_MEMORY, |row| Some(row.run.truth.out_of_memory)),
            bytes(names::CAPACITY, |row| Some(row.run.truth.capacity)),
            column(
                names::ESTIMATOR,
                EvaluationValues::Texts(each(&rows, |row| Some(row.estimator.to_owned()))),
            ),
            bytes(names::MEMORY, |row| Some(row.estimate.memory)),
            bytes(names::RESERVE, |row| Some(row.estimate.reserve)),
            bytes(names::LOW, |row| row.estimate.range.map(|(low, _)| low)),
            bytes(names::HIGH, |row| row.estimate.range.map(|(_, high)| high)),
            truths(names::ESTIMATED_OUT_OF_MEMORY, |row| Some(row.estimate.out_of_memory)),
            numbers(names::ERROR, |row| row.outcome.error),
            numbers(names::SIGNED_ERROR, |row| row.outcome.signed_error),
            truths(names::SECOND_OUT_OF_MEMORY, |row| Some(row.estimate.second?.out_of_memory)),
            numbers(names::SECOND_ERROR, |row| row.estimate.second?.error),
            truths(names::USABLE, |row| row.outcome.usable),
            numbers(names::RUNTIME, |row| row.estimate.runtime.as_ref().map(Duration::as_secs_f64)),
        ];
        of_factors.chain(of_rows).collect()
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for run in &self.runs {
            let estimates = self.estimators.iter().zip(&run.estimates);
            rows.extend(estimates.filter_map(|(estimator, estimate)| {
                let estimate = estimate.as_ref()?;
                Some(Row { run, estimator, estimate, outcome: estimate.outcome(&run.truth) })
            }));
        }
        rows
    }
}

/// An estimate of a run, and what became of it.
struct Row<'a> {
    run: &'a EvaluatedRun,
    estimator: &'a str,
    estimate: &'a EstimatedRun,
    outcome: Outcome,
}

fn column(name: &str, values: EvaluationValues) -> EvaluationColumn {
    EvaluationColumn { name: name.to_owned(), values }
}

fn each<'a, T>(rows: &[Row<'a>], value: impl Fn(&Row<'a>) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

fn integer(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_of_whole_numbers_is_a_column_of_numbers() {
        let of = |texts: &[&str]| {
            EvaluationValues::of_factor(texts.iter().map(|text| Some((*text).to_owned())).collect())
        };
        assert_eq!(of(&["8", "-16"]), EvaluationValues::Integers(vec![Some(8), Some(-16)]));
        for texts in [["8", "t4-16g"], ["8", "008"], ["8", "1.5"]] {
            let values = of(&texts);
            assert!(matches!(values, EvaluationValues::Texts(_)), "{texts:?}");
            assert_eq!([values.text(0), values.text(1)], texts, "as they were");
        }
    }
}
