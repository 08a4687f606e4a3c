//! For people.

use super::json::CheckDocument;
use super::words;
use crate::style::{Ink, Style, paint_decision};
use crate::words::counted;

/// The decision in one line, and below it where memory runs out and what helps.
#[must_use]
pub fn text(document: &CheckDocument, style: &Style) -> String {
    let mut page = text_brief(document, style);
    for line in words::details(document) {
        page += "  ";
        page += &line;
        page.push('\n');
    }
    page
}

/// The decision and the number of warnings in one line.
#[must_use]
pub fn text_brief(document: &CheckDocument, style: &Style) -> String {
    let warnings = match document.warnings {
        0 => String::new(),
        count => format!("  ({})", counted(count, "warning")),
    };
    let line = words::headline_within(document, words::COLUMNS.saturating_sub(warnings.len()));
    let word = words::decision(document);
    let rest = line.strip_prefix(word).unwrap_or_default();
    let warnings = style.paint(Ink::Warning, &warnings);
    format!("{}{rest}{warnings}\n", paint_decision(word, document.decision(), style))
}
