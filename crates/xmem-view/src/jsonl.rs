//! Tables for programs without a reader of Parquet: the blocks, moments or segments of a run as JSON, a line a row.

use crate::Run;
use crate::table::{Column, RunTable, Values, columns};
use serde_json::Value;

/// A table of the run as JSON lines: an object a row, with the names of the columns as keys and null for what is not
/// known. Sizes are bytes, times nanoseconds since the recording began; moments are row numbers of the table of moments.
#[must_use]
pub fn jsonl(run: &Run<'_>, table: RunTable) -> String {
    let columns = columns(run, table);
    let rows = columns.first().map_or(0, |column| column.values.len());
    let mut text = String::new();
    for row in 0..rows {
        for (at, column) in columns.iter().enumerate() {
            text.push(if at == 0 { '{' } else { ',' });
            text += &format!("\"{}\":{}", column.name, cell(column, row));
        }
        text += "}\n";
    }
    text
}

fn cell(column: &Column, row: usize) -> Value {
    match &column.values {
        Values::Integers(values) => values[row].into(),
        Values::OptionalIntegers(values) => values[row].into(),
        Values::OptionalNumbers(values) => values[row].into(),
        Values::Truths(values) => values[row].into(),
        Values::OptionalTruths(values) => values[row].into(),
        Values::Texts(values, texts) => {
            values[row].map(|number| texts[number as usize].as_str()).into()
        }
    }
}
