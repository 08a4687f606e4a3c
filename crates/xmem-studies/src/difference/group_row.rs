//! One group of both runs.

use super::ByteChange;
use xmem_types::Bytes;

/// Blocks of one run that have a name in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFigures {
    /// Bytes of all of them.
    pub bytes: Bytes,
    /// Their number; none where the input does not have it.
    pub blocks: Option<u64>,
}

/// How the names of a group in both runs belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameMatch {
    /// The names are equal.
    Same,
    /// Line numbers, or the counters of classes, are others.
    Shifted,
    /// Another name stands for a part of equal structure or of equal bytes, and no other could.
    Renamed,
    /// It is in one run only.
    Single,
}

impl NameMatch {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Shifted => "shifted",
            Self::Renamed => "renamed",
            Self::Single => "single",
        }
    }
}

/// A group that grew or shrank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceRow {
    /// Its name in the first run; none if it is not there, empty where nothing is known of its blocks.
    pub name_a: Option<String>,
    /// Its name in the second run.
    pub name_b: Option<String>,
    /// How the names belong together.
    pub matched: NameMatch,
    /// Its blocks in the first run.
    pub a: GroupFigures,
    /// Its blocks in the second run.
    pub b: GroupFigures,
}

impl DifferenceRow {
    /// Its bytes in both.
    #[must_use]
    pub fn bytes(&self) -> ByteChange {
        ByteChange { a: self.a.bytes, b: self.b.bytes }
    }

    /// Its name, that of the second run if it is there.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name_b.as_deref().or(self.name_a.as_deref()).unwrap_or_default()
    }

    /// Its name in the first run, if that was another.
    #[must_use]
    pub fn old_name(&self) -> Option<&str> {
        let (old, new) = (self.name_a.as_deref()?, self.name_b.as_deref()?);
        (old != new).then_some(old)
    }
}

/// A row of groups that are there, or not.
pub(super) fn row(
    (name_a, a): (&str, Option<GroupFigures>),
    (name_b, b): (&str, Option<GroupFigures>),
    matched: NameMatch,
) -> DifferenceRow {
    let missing = |other: Option<GroupFigures>| {
        let blocks = other.and_then(|other| other.blocks.map(|_| 0));
        GroupFigures { bytes: Bytes::ZERO, blocks }
    };
    DifferenceRow {
        name_a: a.map(|_| name_a.to_owned()),
        name_b: b.map(|_| name_b.to_owned()),
        matched: if a.is_some() && b.is_some() { matched } else { NameMatch::Single },
        a: a.unwrap_or_else(|| missing(b)),
        b: b.unwrap_or_else(|| missing(a)),
    }
}

impl std::ops::Add for GroupFigures {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let blocks = self.blocks.zip(other.blocks).map(|(a, b)| a + b);
        Self { bytes: self.bytes + other.bytes, blocks }
    }
}

impl GroupFigures {
    /// No blocks.
    pub const NONE: Self = Self { bytes: Bytes::ZERO, blocks: Some(0) };
}
