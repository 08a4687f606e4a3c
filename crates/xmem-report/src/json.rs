//! The machine-readable formats. Every document has a `schema` field; sizes are integers in bytes.
//! Keys have the order of the structs here and never depend on the content: absent values are
//! `null`. The JSON Schemas are part of the documentation.

mod answer;
mod convolutions;
mod devices;
mod difference;
mod document;
mod error;
mod hints;
mod inspect;
mod lengths;
mod offload;
mod operations;
mod plan;
mod ranks;
mod recorded;
mod replay;
mod setup;
mod simulate;
mod snapshot_info;
mod snapshot_replay;
mod validation;
mod variants;

pub use answer::{AnswerError, read_answer};
pub use convolutions::ConvolutionsDocument;
pub use devices::DevicesDocument;
pub use difference::DifferenceDocument;
pub use document::Document;
pub use error::ErrorDocument;
pub use hints::{HintsDocument, HintsDocumentError, HintsScope, PlanRunDocument, read_hints};
pub use inspect::InspectDocument;
pub use lengths::LengthsDocument;
pub use offload::OffloadDocument;
pub use operations::{OperationsError, read_operations};
pub use plan::{PlanDetail, PlanDocument};
pub use ranks::RanksDocument;
pub use replay::{ReplayDocument, Rules};
pub use simulate::{SegmentDetail, SimulateForm, SimulateWriter};
pub use snapshot_info::SnapshotInfoDocument;
pub use snapshot_replay::SnapshotReplayDocument;
pub use validation::ValidateDocument;
pub use variants::VariantsDocument;

use serde::Serialize;
use std::borrow::Cow;
use xmem::types::printable_lines;

pub(crate) use error::ERROR;
pub(crate) use ranks::RANKS;
pub(crate) use replay::REPLAY;
pub(crate) use variants::VARIANTS;

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

/// A diagnostic: something odd or missing.
#[derive(Serialize)]
struct FindingDto<'a> {
    code: &'a str,
    severity: String,
    message: &'a str,
    place: Option<&'a str>,
    count: u64,
}

impl<'a> From<&'a xmem::predict::Finding> for FindingDto<'a> {
    fn from(finding: &'a xmem::predict::Finding) -> Self {
        Self {
            code: finding.code,
            severity: finding.severity.to_string(),
            message: &finding.message,
            place: finding.place.as_deref(),
            count: finding.count,
        }
    }
}
