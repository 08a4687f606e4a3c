//! Diagnostics in the form in which answers carry them.

use xmem_types::{Diagnostic, Severity};

/// Something odd or missing, in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable, kebab-case name.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The oddity, and its consequence for the answer.
    pub message: String,
    /// The first place it was seen, in words.
    pub place: Option<String>,
    /// The number of times it was seen.
    pub count: u64,
}

impl Finding {
    /// A diagnostic without its place.
    #[must_use]
    pub fn anywhere(diagnostic: &Diagnostic) -> Self {
        Self {
            code: diagnostic.code,
            severity: diagnostic.severity,
            message: diagnostic.message.clone(),
            place: None,
            count: diagnostic.count,
        }
    }
}
