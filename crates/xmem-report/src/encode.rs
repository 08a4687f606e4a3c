//! Documents as text in JSON.

use serde::Serialize;
use std::borrow::Cow;
use xmem::types::printable_lines;

/// Returns whether a text is one complete document.
#[must_use]
pub fn is_document(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// A document as indented JSON with a final newline.
#[must_use]
pub fn pretty(document: &impl Serialize) -> String {
    finish(serde_json::to_string_pretty(document))
}

/// A document as one line of JSON, newline included.
#[must_use]
pub fn line(document: &impl Serialize) -> String {
    finish(serde_json::to_string(document))
}

fn finish(text: serde_json::Result<String>) -> String {
    let mut text = text.expect("documents have string keys and finite numbers only");
    text.push('\n');
    escaped(text)
}

/// JSON in which text holds printable characters only. Line feeds stand between values; whatever else
/// is not printable stands in text, where its escape means the same.
fn escaped(json: String) -> String {
    match printable_lines(&json) {
        Cow::Borrowed(_) => json,
        Cow::Owned(escaped) => escaped,
    }
}
