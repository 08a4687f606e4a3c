//! For people.

use super::document::CheckDocument;
use super::words;
use crate::text::{Style, paint_decision};

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

/// The decision in one line.
#[must_use]
pub fn text_brief(document: &CheckDocument, style: &Style) -> String {
    let line = words::headline(document);
    let word = words::decision(document);
    let rest = line.strip_prefix(word).unwrap_or_default();
    format!("{}{rest}\n", paint_decision(word, document.decision(), style))
}
