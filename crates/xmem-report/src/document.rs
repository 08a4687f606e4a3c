//! An entry in a list of several answers.

use crate::error::ErrorDocument;
use crate::ranks::json::RanksDocument;
use crate::replay::json::{ReplayDocument, Rules};
use crate::variants::json::VariantsDocument;
use serde::{Serialize, Serializer};
use xmem::Answer;

/// The answer for a trace, its error, or the answer about several traces. The `schema` field distinguishes them.
pub enum Document<'a> {
    /// `xmem.replay/2`.
    Replay(Box<ReplayDocument<'a>>),
    /// `xmem.error/1`.
    Error(ErrorDocument<'a>),
    /// `xmem.ranks/1`: about several traces of the list.
    Ranks(Box<RanksDocument<'a>>),
    /// `xmem.variants/1`: about several traces of the list.
    Variants(VariantsDocument<'a>),
}

impl<'a> Document<'a> {
    /// The document of an answer about `trace`, the input as the user named it, with `settings`.
    #[must_use]
    pub fn answer(trace: &'a str, settings: &'a str, answer: &'a Answer, rules: Rules) -> Self {
        Self::Replay(Box::new(ReplayDocument::new(trace, settings, answer, rules)))
    }

    /// The document of an error and its code; with `settings`, if the error concerns these.
    #[must_use]
    pub fn error(
        trace: &'a str,
        settings: Option<&'a str>,
        error: (&'a str, &dyn std::error::Error),
    ) -> Self {
        Self::Error(ErrorDocument::new(trace, settings, error))
    }
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Replay(document) => document.serialize(serializer),
            Self::Error(document) => document.serialize(serializer),
            Self::Ranks(document) => document.serialize(serializer),
            Self::Variants(document) => document.serialize(serializer),
        }
    }
}
