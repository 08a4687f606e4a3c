//! An evaluation as columns, for tables: a row for each estimate of each job.

use super::{EstimatedRun, EvaluatedRun, Evaluation};
use std::time::Duration;
use xmem::Bytes;

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

    /// The value of a row as text, empty where there is none.
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
            let values = EvaluationValues::of_factor(rows.iter().map(value).collect());
            EvaluationColumn { name: factor.to_owned(), values }
        });
        let of_rows = [
            integers("peak_bytes", &rows, |row| Some(row.run.truth.peak)),
            truths("out_of_memory", &rows, |row| Some(row.run.truth.out_of_memory)),
            integers("capacity_bytes", &rows, |row| Some(row.run.truth.capacity)),
            texts("estimator", &rows, |row| row.estimator),
            integers("memory_bytes", &rows, |row| Some(row.estimate.memory)),
            integers("low_bytes", &rows, |row| row.estimate.range.map(|(low, _)| low)),
            integers("high_bytes", &rows, |row| row.estimate.range.map(|(_, high)| high)),
            truths("estimated_out_of_memory", &rows, |row| Some(row.estimate.out_of_memory)),
            numbers("error", &rows, |row| row.estimate.outcome(&row.run.truth).error),
            numbers("signed_error", &rows, |row| row.estimate.outcome(&row.run.truth).signed_error),
            truths("second_out_of_memory", &rows, |row| Some(row.estimate.second?.out_of_memory)),
            numbers("second_error", &rows, |row| row.estimate.second?.error),
            truths("usable", &rows, |row| row.estimate.outcome(&row.run.truth).usable),
            numbers("runtime_s", &rows, |row| {
                row.estimate.runtime.as_ref().map(Duration::as_secs_f64)
            }),
        ];
        of_factors.chain(of_rows).collect()
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for run in &self.runs {
            let estimates = self.estimators.iter().zip(&run.estimates);
            rows.extend(estimates.filter_map(|(estimator, estimate)| {
                Some(Row { run, estimator, estimate: estimate.as_ref()? })
            }));
        }
        rows
    }
}

/// An estimate of a run.
#[derive(Clone, Copy)]
struct Row<'a> {
    run: &'a EvaluatedRun,
    estimator: &'a str,
    estimate: &'a EstimatedRun,
}

type Rows<'r, 'a> = &'r [Row<'a>];

fn integers(
    name: &str,
    rows: Rows<'_, '_>,
    value: impl Fn(&Row<'_>) -> Option<Bytes>,
) -> EvaluationColumn {
    let value = |row| value(row).map(|bytes| i64::try_from(bytes.get()).unwrap_or(i64::MAX));
    let values = EvaluationValues::Integers(rows.iter().map(value).collect());
    EvaluationColumn { name: name.to_owned(), values }
}

fn numbers(
    name: &str,
    rows: Rows<'_, '_>,
    value: impl Fn(&Row<'_>) -> Option<f64>,
) -> EvaluationColumn {
    let values = EvaluationValues::Numbers(rows.iter().map(value).collect());
    EvaluationColumn { name: name.to_owned(), values }
}

fn truths(
    name: &str,
    rows: Rows<'_, '_>,
    value: impl Fn(&Row<'_>) -> Option<bool>,
) -> EvaluationColumn {
    let values = EvaluationValues::Truths(rows.iter().map(value).collect());
    EvaluationColumn { name: name.to_owned(), values }
}

fn texts<'a>(
    name: &str,
    rows: Rows<'_, 'a>,
    value: impl Fn(&Row<'a>) -> &'a str,
) -> EvaluationColumn {
    let value = |row| Some(value(row).to_owned());
    let values = EvaluationValues::Texts(rows.iter().map(value).collect());
    EvaluationColumn { name: name.to_owned(), values }
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
