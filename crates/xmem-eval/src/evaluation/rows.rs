//! The rows of a table of an evaluation, read again: what [`Evaluation::columns`](super::Evaluation::columns) made.

use super::columns::names;
use super::{
    Configuration, EstimatedRun, EvaluationColumn, EvaluationValues, SecondRound, TrueRun,
};
use std::time::Duration;
use xmem::Bytes;

/// A row: an estimate of a job. Memory by class is not in tables.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationRow {
    /// The job and the device.
    pub configuration: Configuration,
    /// The run.
    pub truth: TrueRun,
    /// The name of the estimator.
    pub estimator: String,
    /// Its estimate.
    pub estimate: EstimatedRun,
}

impl EvaluationRow {
    /// The rows of columns of one length.
    ///
    /// Older tables have no column `reserve_bytes`: there, the upper end of an estimate's range is the memory to reserve.
    ///
    /// # Errors
    ///
    /// What is wrong with the table, in words: a column that is missing or has values of another type, or a row without a value.
    pub fn of_columns(columns: &[EvaluationColumn]) -> Result<Vec<Self>, String> {
        let rows = columns.first().map_or(0, |column| column.values.len());
        let table = Table(columns);
        (0..rows).map(|row| table.row(row).map_err(|error| error.in_row(row))).collect()
    }
}

/// What a row cannot be made of.
enum Wrong {
    Missing(&'static str),
    Type(&'static str, &'static str),
    Empty(&'static str),
    Value(&'static str, String),
}

impl Wrong {
    fn in_row(self, row: usize) -> String {
        match self {
            Self::Missing(column) => format!("it has no column `{column}`"),
            Self::Type(column, expected) => format!("`{column}` is not a column of {expected}"),
            Self::Empty(column) => format!("`{column}` is empty in row {row}"),
            Self::Value(column, value) => format!("`{column}` is {value} in row {row}"),
        }
    }
}

fn needed<T>(name: &'static str, value: Option<T>) -> Result<T, Wrong> {
    value.ok_or(Wrong::Empty(name))
}

/// Columns by name.
struct Table<'a>(&'a [EvaluationColumn]);

impl Table<'_> {
    fn row(&self, row: usize) -> Result<EvaluationRow, Wrong> {
        let bytes = |name| needed(name, self.bytes(name, row)?);
        let truth = |name| needed(name, self.truth(name, row)?);
        let memory = bytes(names::MEMORY)?;
        let range = self.bytes(names::LOW, row)?.zip(self.bytes(names::HIGH, row)?);
        let reserve = match self.has(names::RESERVE) {
            true => bytes(names::RESERVE)?,
            false => range.map_or(memory, |(_, high)| high),
        };
        let second = match self.truth(names::SECOND_OUT_OF_MEMORY, row)? {
            Some(out_of_memory) => {
                Some(SecondRound { out_of_memory, error: self.number(names::SECOND_ERROR, row)? })
            }
            None => None,
        };
        Ok(EvaluationRow {
            configuration: self.configuration(row),
            truth: TrueRun {
                peak: bytes(names::PEAK)?,
                out_of_memory: truth(names::OUT_OF_MEMORY)?,
                capacity: bytes(names::CAPACITY)?,
                classes: None,
            },
            estimator: needed(names::ESTIMATOR, self.text(names::ESTIMATOR, row)?)?,
            estimate: EstimatedRun {
                memory,
                reserve,
                range,
                out_of_memory: truth(names::ESTIMATED_OUT_OF_MEMORY)?,
                second,
                runtime: self.duration(names::RUNTIME, row)?,
                classes: None,
            },
        })
    }

    /// The values of the columns that are factors.
    fn configuration(&self, row: usize) -> Configuration {
        let factors = self.0.iter().filter(|column| !names::ALL.contains(&column.name.as_str()));
        let values = factors.map(|column| (column.name.clone(), column.values.text(row)));
        Configuration::new(values.filter(|(_, value)| !value.is_empty()))
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|column| column.name == name)
    }

    fn values(&self, name: &'static str) -> Result<&EvaluationValues, Wrong> {
        let column = self.0.iter().find(|column| column.name == name);
        column.map(|column| &column.values).ok_or(Wrong::Missing(name))
    }

    fn bytes(&self, name: &'static str, row: usize) -> Result<Option<Bytes>, Wrong> {
        let EvaluationValues::Integers(values) = self.values(name)? else {
            return Err(Wrong::Type(name, "whole numbers"));
        };
        let bytes = values[row].map(u64::try_from).transpose();
        let bytes = bytes.map_err(|_| Wrong::Value(name, "negative".to_owned()))?;
        Ok(bytes.map(Bytes))
    }

    fn number(&self, name: &'static str, row: usize) -> Result<Option<f64>, Wrong> {
        match self.values(name)? {
            EvaluationValues::Numbers(values) => Ok(values[row]),
            _ => Err(Wrong::Type(name, "numbers")),
        }
    }

    fn truth(&self, name: &'static str, row: usize) -> Result<Option<bool>, Wrong> {
        match self.values(name)? {
            EvaluationValues::Truths(values) => Ok(values[row]),
            _ => Err(Wrong::Type(name, "true and false")),
        }
    }

    fn text(&self, name: &'static str, row: usize) -> Result<Option<String>, Wrong> {
        match self.values(name)? {
            EvaluationValues::Texts(values) => Ok(values[row].clone()),
            _ => Err(Wrong::Type(name, "texts")),
        }
    }

    fn duration(&self, name: &'static str, row: usize) -> Result<Option<Duration>, Wrong> {
        let seconds = self.number(name, row)?;
        let wrong = |seconds| Wrong::Value(name, format!("{seconds} seconds"));
        seconds.map(|s| Duration::try_from_secs_f64(s).map_err(|_| wrong(s))).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EvaluatedRun, Evaluation, TruthSource};
    use super::*;

    fn evaluation() -> Evaluation {
        let estimate = EstimatedRun {
            memory: Bytes::gib(5),
            reserve: Bytes::gib(6),
            range: Some((Bytes::gib(4), Bytes::gib(7))),
            out_of_memory: false,
            second: Some(SecondRound { out_of_memory: false, error: Some(0.25) }),
            runtime: Some(Duration::from_millis(1500)),
            classes: None,
        };
        let point = EstimatedRun {
            range: None,
            out_of_memory: true,
            second: None,
            runtime: None,
            ..estimate
        };
        let run = |batch: &str, estimates| EvaluatedRun {
            configuration: Configuration::new(
                [("batch", batch), ("device", "t4-16g")].map(|(f, v)| (f.to_owned(), v.to_owned())),
            ),
            truth: TrueRun {
                peak: Bytes::gib(4),
                out_of_memory: false,
                capacity: Bytes::gib(16),
                classes: None,
            },
            estimates,
        };
        Evaluation {
            title: String::new(),
            truth: TruthSource::VirtualGpu,
            estimators: vec!["ours".to_owned(), "theirs".to_owned()],
            runs: vec![
                run("8", vec![Some(estimate), Some(point)]),
                run("16", vec![None, Some(point)]),
            ],
            failures: Vec::new(),
            of: 2,
        }
    }

    #[test]
    fn rows_are_what_the_columns_were_made_of() {
        let evaluation = evaluation();
        let mut expected = Vec::new();
        for run in &evaluation.runs {
            for (estimator, estimate) in evaluation.estimators.iter().zip(&run.estimates) {
                expected.extend(estimate.map(|estimate| EvaluationRow {
                    configuration: run.configuration.clone(),
                    truth: run.truth,
                    estimator: estimator.clone(),
                    estimate,
                }));
            }
        }
        assert_eq!(EvaluationRow::of_columns(&evaluation.columns()), Ok(expected));
    }

    #[test]
    fn what_is_wrong_with_a_table_is_named() {
        let columns = evaluation().columns();
        let wrong = |change: &dyn Fn(&mut Vec<EvaluationColumn>)| {
            let mut columns = columns.clone();
            change(&mut columns);
            EvaluationRow::of_columns(&columns).map(|rows| rows[0].estimate.reserve)
        };
        let of = |name: &'static str, values: fn(usize) -> EvaluationValues| {
            move |columns: &mut Vec<EvaluationColumn>| {
                let column = columns.iter_mut().find(|column| column.name == name);
                let column = column.expect("a column");
                column.values = values(column.values.len());
            }
        };
        let without = |name: &'static str| {
            move |columns: &mut Vec<EvaluationColumn>| columns.retain(|column| column.name != name)
        };
        let words = |text: &str| Err(text.to_owned());
        assert_eq!(wrong(&without("peak_bytes")), words("it has no column `peak_bytes`"));
        assert_eq!(wrong(&without("reserve_bytes")), Ok(Bytes::gib(7)), "the most of the range");
        assert_eq!(
            wrong(&of("memory_bytes", |rows| EvaluationValues::Numbers(vec![None; rows]))),
            words("`memory_bytes` is not a column of whole numbers")
        );
        assert_eq!(
            wrong(&of("estimator", |rows| EvaluationValues::Texts(vec![None; rows]))),
            words("`estimator` is empty in row 0")
        );
        assert_eq!(
            wrong(&of("capacity_bytes", |rows| EvaluationValues::Integers(vec![Some(-1); rows]))),
            words("`capacity_bytes` is negative in row 0")
        );
        assert_eq!(
            wrong(&of("runtime_s", |rows| EvaluationValues::Numbers(vec![Some(-1.0); rows]))),
            words("`runtime_s` is -1 seconds in row 0")
        );
    }
}
