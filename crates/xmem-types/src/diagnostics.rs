//! Oddities of the input: collected beside the result, never instead of it.

use crate::{OpId, WithheldReason, printable};
use std::fmt;

/// The weight of a diagnostic for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Good to know; the answer does not change.
    Note,
    /// The answer may be less precise.
    Warning,
    /// Something essential is missing. Diagnostics of a [`WithheldReason`] have this severity.
    Serious,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Serious => "serious",
        })
    }
}

/// The place in the input that a diagnostic points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// Bytes from the start of the (inflated) file.
    ByteOffset(u64),
    /// Row of the trace's memory table.
    MemoryEvent(u32),
    /// Operator or annotation.
    Op(OpId),
}

/// One kind of oddity, with how often it was seen and where first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Stable, kebab-case name (`free-without-allocation`).
    pub code: &'static str,
    /// Its weight for the answer.
    pub severity: Severity,
    /// One plain sentence, what and what it means for the answer. The first occurrence's text.
    pub message: String,
    /// The first place it was seen.
    pub first: Option<Location>,
    /// The number of occurrences.
    pub count: u64,
}

/// Diagnostics merged by code, in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    withheld: Vec<WithheldReason>,
}

impl Diagnostics {
    /// Adds one occurrence of `code`; text and place of the first one are kept.
    pub fn report(
        &mut self,
        code: &'static str,
        severity: Severity,
        at: Option<Location>,
        message: impl FnOnce() -> String,
    ) {
        self.report_many(code, severity, at, 1, message);
    }

    /// Adds `count` occurrences of `code` at once; none if `count` is zero.
    pub fn report_many(
        &mut self,
        code: &'static str,
        severity: Severity,
        at: Option<Location>,
        count: u64,
        message: impl FnOnce() -> String,
    ) {
        if count == 0 {
            return;
        }
        if let Some(known) = self.list.iter_mut().find(|d| d.code == code) {
            known.count += count;
            known.severity = known.severity.max(severity);
            return;
        }
        // Messages name what stands in the input.
        let message = printable(&message()).into_owned();
        self.list.push(Diagnostic { code, severity, message, first: at, count });
    }

    /// Withholds the verdict for `reason`, which was met `count` times (not at all if that is
    /// zero), and adds the diagnostic that says so.
    pub fn withhold(
        &mut self,
        reason: WithheldReason,
        count: u64,
        message: impl FnOnce() -> String,
    ) {
        if count == 0 {
            return;
        }
        if !self.withheld.contains(&reason) {
            self.withheld.push(reason);
        }
        self.report_many(reason.code(), Severity::Serious, None, count, message);
    }

    /// Removes a note that does not concern the reader. A reason for withholding the verdict stays.
    pub fn remove(&mut self, code: &str) {
        self.list.retain(|d| d.code != code || d.severity > Severity::Note);
    }

    /// The reasons for withholding the verdict, in order of first appearance.
    #[must_use]
    pub fn withheld_reasons(&self) -> &[WithheldReason] {
        &self.withheld
    }

    /// Adds everything that `other` holds.
    pub fn extend(&mut self, other: Self) {
        for reason in other.withheld {
            if !self.withheld.contains(&reason) {
                self.withheld.push(reason);
            }
        }
        for d in other.list {
            self.report_many(d.code, d.severity, d.first, d.count, || d.message);
        }
    }

    /// The diagnostic with this code, if it was reported.
    #[must_use]
    pub fn get(&self, code: &str) -> Option<&Diagnostic> {
        self.list.iter().find(|d| d.code == code)
    }

    /// All of them, in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// The most severe kind reported, if any.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.list.iter().map(|d| d.severity).max()
    }

    /// Returns whether nothing was reported.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_of_one_code_are_counted_and_the_first_place_is_kept() {
        let mut d = Diagnostics::default();
        d.report("bad-event", Severity::Warning, Some(Location::ByteOffset(7)), || "first".into());
        d.report("bad-event", Severity::Serious, Some(Location::ByteOffset(9)), || "second".into());
        let only = d.get("bad-event").expect("reported");
        assert_eq!(
            (only.count, only.severity, only.message.as_str()),
            (2, Severity::Serious, "first")
        );
        assert_eq!(only.first, Some(Location::ByteOffset(7)));
    }

    #[test]
    fn reasons_are_kept_once_and_survive_merging() {
        let mut first = Diagnostics::default();
        first.withhold(WithheldReason::NoOperators, 1, || "no operators".into());
        first.withhold(WithheldReason::GpuTrace, 0, || "not met".into());
        let mut all = Diagnostics::default();
        all.report("bad-event", Severity::Serious, None, || "severity alone is no reason".into());
        assert!(all.withheld_reasons().is_empty());
        all.extend(first.clone());
        all.extend(first);
        assert_eq!(all.withheld_reasons(), [WithheldReason::NoOperators]);
        let found = all.get("no-operators").expect("reported");
        assert_eq!((found.severity, found.count), (Severity::Serious, 2));
    }
}
