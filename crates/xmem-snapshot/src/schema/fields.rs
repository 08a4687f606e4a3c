//! The keys of a dict, and what to say when a value does not fit.

use crate::error::SnapshotError;
use crate::pickle::{ContainerId, Tree, Value};
use xmem_types::printable;

/// One key of a dict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'t> {
    /// The key; empty if it is not text.
    pub(super) key: &'t [u8],
    pub(super) value: Value,
    /// The offset at which its dict begins.
    pub(super) at: usize,
}

impl Field<'_> {
    /// The error that this field's value is not `expected`.
    pub(super) fn misfit(&self, expected: &str) -> SnapshotError {
        self.error(format!("is {}, expected {expected}", self.value.kind()))
    }

    pub(super) fn error(&self, problem: String) -> SnapshotError {
        SnapshotError::Layout { path: shown(self.key), at: self.at, problem }
    }
}

/// The keys of one dict, in its order. A key that is there twice comes twice; as in Python, the
/// last one counts.
#[derive(Clone, Debug)]
pub(super) struct Fields<'t, 'a> {
    pairs: std::iter::Zip<std::slice::Iter<'t, Value>, std::slice::Iter<'t, Value>>,
    tree: &'t Tree<'a>,
    /// The offset at which the dict begins.
    pub(super) at: usize,
}

impl<'t, 'a> Fields<'t, 'a> {
    pub(super) fn new(tree: &'t Tree<'a>, dict: ContainerId) -> Self {
        let pairs = tree.keys(dict).iter().zip(tree.items(dict));
        Self { pairs, tree, at: tree.at(dict) }
    }
}

impl<'a> Iterator for Fields<'_, 'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let (&key, &value) = self.pairs.next()?;
        let key = match key {
            Value::Text(id) => self.tree.text(id),
            _ => b"",
        };
        Some(Field { key, value, at: self.at })
    }
}

/// The value of a key that must be there.
pub(super) fn need<T>(value: Option<T>, key: &str, at: usize) -> Result<T, SnapshotError> {
    value.ok_or_else(|| SnapshotError::Layout {
        path: String::new(),
        at,
        problem: format!("has no key `{key}`"),
    })
}

/// Text from the file, short enough for a message.
pub(super) fn shown(text: &[u8]) -> String {
    const LONGEST: usize = 60;
    let cut = text.get(..LONGEST).unwrap_or(text);
    let mut shown = printable(&String::from_utf8_lossy(cut)).into_owned();
    if cut.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Puts the place of an error into its surroundings.
pub(super) trait Within {
    /// Prefixes the path of a layout error.
    fn within(self, outer: impl FnOnce() -> String) -> Self;
}

impl<T> Within for Result<T, SnapshotError> {
    fn within(self, outer: impl FnOnce() -> String) -> Self {
        self.map_err(|error| match error {
            SnapshotError::Layout { path, at, problem } => {
                let mut whole = outer();
                if !path.is_empty() && !path.starts_with('[') {
                    whole.push('.');
                }
                whole.push_str(&path);
                SnapshotError::Layout { path: whole, at, problem }
            }
            other => other,
        })
    }
}
