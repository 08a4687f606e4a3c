//! The counts in docs/results/damage.md.

use crate::recording::Input;
use crate::report::Report;
use xmem_task::{Error, repo};

/// The document.
const PATH: &str = "docs/results/damage.md";

/// The lines around a generated part.
fn lines_around(input: Input) -> [String; 2] {
    let name = input.name();
    ["begin", "end"].map(|end| format!("<!-- cargo xtask attack --write: {name}, {end} -->\n"))
}

/// Replaces the generated parts of the document for which there were runs.
pub(crate) fn write(report: &Report) -> Result<(), Error> {
    let path = repo::root().join(PATH);
    let mut text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    for input in Input::ALL {
        if let Some(table) = report.table(input) {
            text = replaced(&text, input, &table);
        }
    }
    std::fs::write(&path, text).map_err(Error::file(&path))
}

/// The text with this between the two lines of a part.
fn replaced(text: &str, input: Input, generated: &str) -> String {
    let [begin, end] = lines_around(input);
    let (before, rest) = text.split_once(&begin).unwrap_or((text, ""));
    let after = rest.split_once(&end).map_or("", |(_, after)| after);
    format!("{before}{begin}\n{generated}\n{end}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_generated_part_changes() {
        let [begin, end] = lines_around(Input::Snapshot);
        let replaced = |text: &str, generated| replaced(text, Input::Snapshot, generated);
        let first = replaced("# Title\n", "one\n");
        assert_eq!(first, format!("# Title\n{begin}\none\n\n{end}"));
        let text = format!("{first}\nmore\n");
        assert_eq!(replaced(&replaced(&text, "two\n"), "one\n"), text);
    }
}
