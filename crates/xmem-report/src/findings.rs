//! Diagnostics, as text and as part of other documents.

use crate::style::{Ink, Style, wrap};
use serde::Serialize;
use xmem::predict::Finding;
use xmem::types::Severity;

/// [`each`] of them in one text.
pub(crate) fn findings(found: &[Finding], least: Severity, style: &Style) -> String {
    each(found, least, style).collect()
}

/// Serious ones first, then warnings, then notes; within each, in the order of the pipeline. One text each.
pub(crate) fn each<'f>(
    findings: &'f [Finding],
    least: Severity,
    style: &'f Style,
) -> impl Iterator<Item = String> + 'f {
    let mut order: Vec<&Finding> = findings.iter().filter(|f| f.severity >= least).collect();
    order.sort_by_key(|f| std::cmp::Reverse(f.severity));
    order.into_iter().map(move |finding| {
        let (label, ink) = match finding.severity {
            Severity::Serious => ("serious", Ink::Bad),
            Severity::Warning => ("warning", Ink::Warning),
            Severity::Note => ("note", Ink::Faint),
        };
        let mut text = finding.message.clone();
        match (finding.count, &finding.place) {
            (1, None) => {}
            (1, Some(place)) => text += &format!(" (at {place})"),
            (n, None) => text += &format!(" ({n} times)"),
            (n, Some(place)) => text += &format!(" ({n} times, first at {place})"),
        }
        let lines = wrap(&text, style.columns().saturating_sub(12));
        let line = |(i, line): (usize, &String)| {
            let label = if i == 0 { format!("{label:<8}") } else { " ".repeat(8) };
            format!("  {} {line}\n", style.paint(ink, &label))
        };
        lines.iter().enumerate().map(line).collect()
    })
}

/// A diagnostic about odd or missing content.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FindingDto<'a> {
    /// Stable name in kebab-case.
    code: &'a str,
    /// note: the answer does not change; warning: it is less precise; serious: no verdict.
    #[cfg_attr(test, schemars(extend("enum" = ["note", "warning", "serious"])))]
    severity: String,
    /// The diagnostic, and its effect on the answer.
    message: &'a str,
    /// The first occurrence, as text.
    place: Option<&'a str>,
    /// Number of occurrences.
    #[cfg_attr(test, schemars(range(min = 1)))]
    count: u64,
}

impl<'a> From<&'a Finding> for FindingDto<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            code: finding.code,
            severity: finding.severity.to_string(),
            message: &finding.message,
            place: finding.place.as_deref(),
            count: finding.count,
        }
    }
}
