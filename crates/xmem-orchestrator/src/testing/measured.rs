//! Workspaces that an H100 was asked for (`traces/measured/libraries.py`).
#![expect(clippy::disallowed_methods, reason = "the table is a file")]

use serde_json::Value;
use std::path::Path;

/// The rows of some functions.
pub(crate) fn rows(functions: &[&str]) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces/measured/h100-80g/libraries.jsonl.zst");
    let file = std::fs::File::open(path).expect("the table");
    let text = zstd::decode_all(file).expect("zstd");
    let text = String::from_utf8(text).expect("UTF-8");
    let rows = text.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    rows.filter(|row: &Value| functions.iter().any(|function| row["function"] == *function))
        .collect()
}

/// The numbers of a list.
pub(crate) fn numbers(list: &Value) -> Vec<u64> {
    let list = list.as_array().expect("a list");
    list.iter().map(|number| number.as_u64().expect("a number")).collect()
}
