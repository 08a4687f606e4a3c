//! The counts in docs/security.md.

use super::report::Report;
use crate::error::Error;
use crate::repo;

/// The document, and the lines around its generated part.
const PATH: &str = "docs/security.md";
const BEGIN: &str = "<!-- cargo xtask attack --update: begin -->\n";
const END: &str = "<!-- cargo xtask attack --update: end -->\n";

/// Replaces the generated part of the document.
pub(super) fn write(report: &Report) -> Result<(), Error> {
    let path = repo::root().join(PATH);
    let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    std::fs::write(&path, replaced(&text, &report.table())).map_err(Error::file(&path))
}

/// The text with this between the two lines.
fn replaced(text: &str, generated: &str) -> String {
    let (before, rest) = text.split_once(BEGIN).unwrap_or((text, ""));
    let after = rest.split_once(END).map_or("", |(_, after)| after);
    format!("{before}{BEGIN}\n{generated}\n{END}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_generated_part_changes() {
        let first = replaced("# Title\n", "one\n");
        assert_eq!(first, format!("# Title\n{BEGIN}\none\n\n{END}"));
        let text = format!("{first}\nmore\n");
        assert_eq!(replaced(&replaced(&text, "two\n"), "one\n"), text);
    }
}
