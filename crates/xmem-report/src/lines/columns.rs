//! Answers as the rows of a table with typed columns: those of CSV, named with `_` where CSV has a dot.

use super::WrittenAnswer;
use super::read::verdict_by_name;
use crate::document::Document;
use crate::replay::csv;
use serde_json::Value;
use xmem_eval::evaluation::{EvaluationColumn, EvaluationValues};

/// The version of the table's columns.
pub const ANSWERS: &str = "xmem.answers/1";

/// An answer or an error as the cells of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerCells(Vec<Value>);

impl AnswerCells {
    /// The row of a document.
    #[must_use]
    pub fn of(document: &Document<'_>) -> Self {
        Self(csv::values(document))
    }

    /// The name of the device; none for an error.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        let at = csv::COLUMNS.iter().position(|path| *path == "device.name")?;
        self.0[at].as_str()
    }
}

/// The columns of rows. Sizes are bytes.
#[must_use]
pub fn answer_columns(rows: &[AnswerCells]) -> Vec<EvaluationColumn> {
    let column = |(at, path): (usize, &&str)| {
        let cells = rows.iter().map(|row| &row.0[at]);
        let values = match is_number(path) {
            true => EvaluationValues::Integers(cells.map(Value::as_i64).collect()),
            false => EvaluationValues::Texts(
                cells.map(|cell| cell.as_str().map(str::to_owned)).collect(),
            ),
        };
        EvaluationColumn { name: name(path), values }
    };
    csv::COLUMNS.iter().enumerate().map(column).collect()
}

/// The answers that columns have; errors are left out.
///
/// # Errors
/// What is missing, or has another type or value.
pub fn answers_of_columns(columns: &[EvaluationColumn]) -> Result<Vec<WrittenAnswer>, String> {
    let texts = |path: &str| {
        let name = name(path);
        let found = columns.iter().find(|column| column.name == name);
        match found.map(|column| &column.values) {
            Some(EvaluationValues::Texts(texts)) => Ok(texts),
            Some(_) => Err(format!("the column `{name}` is not one of texts")),
            None => Err(format!("it lacks the column `{name}`")),
        }
    };
    let (traces, settings, verdicts) = (texts("trace")?, texts("settings")?, texts("verdict")?);
    let mut answers = Vec::new();
    for ((trace, settings), verdict) in traces.iter().zip(settings).zip(verdicts) {
        let (Some(trace), Some(verdict)) = (trace, verdict) else { continue };
        let verdict =
            verdict_by_name(verdict).ok_or_else(|| format!("`{verdict}` is not a verdict"))?;
        answers.push(WrittenAnswer { trace: trace.clone(), settings: settings.clone(), verdict });
    }
    Ok(answers)
}

fn name(path: &str) -> String {
    path.replace('.', "_")
}

fn is_number(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or_default();
    last.ends_with("_bytes")
        || matches!(
            last,
            "warnings" | "from" | "to" | "low" | "high" | "iteration" | "requests" | "retries"
        )
}
