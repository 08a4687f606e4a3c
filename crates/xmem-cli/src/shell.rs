//! Words of commands that a shell is to run.

use std::borrow::Cow;

/// A word as a shell takes it; one that no shell takes, with a NUL in it, as it is.
pub(crate) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}
