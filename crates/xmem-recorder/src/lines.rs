//! The lines of the script that the hook found, which are added to the trace: numbers alone are taken from its file.

use crate::hook_file;
use serde::{Deserialize, Serialize};
use std::fs::File;

/// The top-level key of a trace.
const KEY: &str = "xmem_lines";

const SCHEMA: &str = "xmem.lines.1";

#[derive(Deserialize, Serialize)]
struct Lines {
    schema: String,
    /// Times since the Unix epoch in ns, each as the difference to the one before.
    starts: Vec<i64>,
    lines: Vec<u32>,
}

/// The key with the lines in a file of the hook, to be written behind the brace with which a trace begins; none if the
/// file has another form.
pub(crate) fn metadata(file: File) -> Option<String> {
    let lines: Lines = hook_file::read(file)?;
    if lines.schema != SCHEMA || lines.starts.len() != lines.lines.len() {
        return None;
    }
    hook_file::metadata(KEY, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<String> {
        metadata(hook_file::with_text(text))
    }

    #[test]
    fn lines_are_numbers_and_nothing_else_of_the_file_is_kept() {
        let good =
            r#"{"schema": "xmem.lines.1", "starts": [5, 2], "lines": [1, 2], "host": "name"}"#;
        let expected =
            "\n\"xmem_lines\": {\"schema\":\"xmem.lines.1\",\"starts\":[5,2],\"lines\":[1,2]},";
        assert_eq!(of(good).as_deref(), Some(expected));
        for bad in [
            "",
            r#"{"schema": "xmem.lines.2", "starts": [], "lines": []}"#,
            r#"{"schema": "xmem.lines.1", "starts": [5], "lines": []}"#,
            r#"{"schema": "xmem.lines.1", "starts": [5], "lines": ["a"]}"#,
            r#"{"schema": "xmem.lines.1", "starts": [5], "lines": [-1]}"#,
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
