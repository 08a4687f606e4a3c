//! What the source of a script says that it will do, and did not do as far as it was recorded.

use serde::Deserialize;

/// The longest place that is kept.
const MAX_PLACE: usize = 200;

/// Something that a script will do, as far as its source says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnseenEvent {
    /// What it is.
    pub kind: UnseenKind,
    /// The first line of the source that does it (`train.py(12)`).
    pub place: String,
}

/// What a script will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnseenKind {
    /// It calls a model without gradients.
    Evaluation,
    /// It generates a sequence.
    Generation,
    /// It writes tensors to a file.
    Saving,
    /// It trains parameters that were frozen.
    Thawing,
}

impl UnseenKind {
    /// The name in machine-readable output (`evaluation`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evaluation => "evaluation",
            Self::Generation => "generation",
            Self::Saving => "saving",
            Self::Thawing => "thawing",
        }
    }
}

/// A kind and a place.
pub(super) type UnseenDto = (UnseenKind, String);

pub(super) fn event((kind, place): UnseenDto) -> UnseenEvent {
    UnseenEvent { kind, place: place.chars().take(MAX_PLACE).collect() }
}
