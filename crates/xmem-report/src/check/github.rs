//! For GitHub Actions: workflow commands, which become annotations of the run.

use super::json::CheckDocument;
use super::words;
use xmem_gate::Decision;

/// One command for each job that is not simply fine, and a line for each that is.
#[must_use]
pub fn github(documents: &[CheckDocument]) -> String {
    documents.iter().map(command).collect()
}

/// Workflow commands for GitHub Actions (docs.github.com, "Workflow commands").
fn command(document: &CheckDocument) -> String {
    let level = match document.decision() {
        _ if document.grew() => "error",
        Decision::DoesNotFit if document.action == "reject" => "error",
        Decision::Fits => return words::headline(document) + "\n",
        Decision::OverRequested => "notice",
        _ => "warning",
    };
    let mut properties = Vec::new();
    let line = document.at.as_ref().and_then(|at| at.line.as_deref());
    if let Some((file, number)) = line.and_then(file_and_line) {
        properties.push(format!("file={},line={number}", property(file)));
    }
    let title = if document.grew() { "GPU memory grew" } else { words::decision(document) };
    properties.push(format!("title={}", property(&format!("xmem: {title}"))));
    let text = [words::headline(document)].into_iter().chain(words::details(document));
    let text = text.collect::<Vec<_>>().join("\n");
    format!("::{level} {}::{}\n", properties.join(","), data(&text))
}

/// The file and the number of `train.py(12): forward`.
fn file_and_line(line: &str) -> Option<(&str, u32)> {
    let (file, rest) = line.split_once('(')?;
    Some((file, rest.split_once(')')?.0.parse().ok()?))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
