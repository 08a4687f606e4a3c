//! An answer as a row. Each column is a value of the JSON document, found by its path, so that the
//! two formats cannot differ.

use serde::Serialize;
use serde_json::Value;
use std::fmt::Display;
use xmem::types::printable;

/// The paths of the columns in the documents.
pub(crate) const COLUMNS: [&str; 38] = [
    "trace",
    "verdict",
    "warnings",
    "integrity.condition",
    "device.name",
    "device.memory_bytes",
    "target.torch",
    "target.convolutions",
    "target.allocator.name",
    "target.allocator.conf",
    "iterations.from",
    "iterations.to",
    "peak.allocated_bytes",
    "peak.requested_bytes",
    "peak.reserved_bytes",
    "peak.device_bytes",
    "range.device_bytes.low",
    "range.device_bytes.high",
    "range.confidence",
    "headroom_bytes",
    "shortfall_bytes",
    "min_capacity_bytes",
    "peak.at.phase",
    "peak.at.op",
    "peak.at.module",
    "out_of_memory.at.iteration",
    "out_of_memory.at.phase",
    "out_of_memory.at.op",
    "out_of_memory.at.module",
    "out_of_memory.tried_bytes",
    "allocator.requests",
    "allocator.retries",
    "error",
    "settings",
    "decision",
    "tight_by",
    "need_bytes",
    "ample_bytes",
];

/// The names of the columns, as a row.
pub(crate) fn header() -> String {
    record(COLUMNS)
}

/// The row of a document. Missing values are empty; no field contains a line break.
pub(crate) fn row(document: &impl Serialize) -> String {
    record(values(document).iter().map(field))
}

/// The values of a document in the columns. An error has its causes behind it.
pub(crate) fn values(document: &impl Serialize) -> Vec<Value> {
    let document = serde_json::to_value(document).expect("documents have string keys");
    let value = |path: &&str| match *path {
        "error" => error(&document),
        path => path.split('.').fold(&document, |value, key| &value[key]).clone(),
    };
    COLUMNS.iter().map(value).collect()
}

fn field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => cell(text),
        other => other.to_string(),
    }
}

/// Text as it stands in a cell: on one line, printable, and with `'` before what a spreadsheet would
/// take for a formula (<https://owasp.org/www-community/attacks/CSV_Injection>).
pub(crate) fn cell(text: &str) -> String {
    let text = in_one_line(text);
    let text = printable(&text);
    if is_formula(&text) { format!("'{text}") } else { text.into_owned() }
}

/// The text of a cell, without the `'` that [`cell`] adds.
pub(crate) fn text(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| is_formula(text)).unwrap_or(cell)
}

fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err()
}

/// The error message with its causes; null without an error.
fn error(document: &Value) -> Value {
    let causes = document["causes"].as_array().into_iter().flatten();
    let all = std::iter::once(&document["error"]).chain(causes);
    let texts = all.filter_map(Value::as_str).filter(|text| !text.is_empty());
    let text = texts.collect::<Vec<_>>().join(": ");
    if text.is_empty() { Value::Null } else { Value::String(text) }
}

fn in_one_line(text: &str) -> String {
    text.replace("\r\n", " ").replace(['\n', '\r'], " ")
}

fn record<T: Display>(fields: impl IntoIterator<Item = T>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let fields = fields.into_iter().map(|field| field.to_string());
    writer.write_record(fields).expect("writing to memory does not fail");
    let bytes = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("fields are UTF-8, and so are commas and quotes")
}
