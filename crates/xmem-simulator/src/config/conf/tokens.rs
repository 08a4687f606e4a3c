//! `ConfigTokenizer`: an option string cut at `,`, `:`, `[` and `]`, without its blanks.

use super::numbers::{Integers, number};
use super::{ConfError, Key};
use xmem_types::{Bytes, MIB};

/// The rest of an option string.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'t> {
    tokens: std::vec::IntoIter<&'t str>,
    text: &'t str,
    numbers: Integers,
}

const MARKS: [char; 4] = [',', ':', '[', ']'];

impl<'t> Tokens<'t> {
    pub(super) fn of(text: &'t str, numbers: Integers) -> Self {
        let mut tokens = Vec::new();
        for piece in text.split_inclusive(MARKS) {
            let word = piece.trim_end_matches(MARKS);
            let mark = &piece[word.len()..];
            tokens.extend([word.trim(), mark].into_iter().filter(|token| !token.is_empty()));
        }
        Self { tokens: tokens.into_iter(), text, numbers }
    }

    pub(super) fn next(&mut self) -> Option<&'t str> {
        self.tokens.next()
    }

    pub(super) fn peeks(&self, token: &str) -> bool {
        self.tokens.as_slice().first() == Some(&token)
    }

    pub(super) fn take(&mut self, token: &str) -> bool {
        let found = self.peeks(token);
        if found {
            self.next();
        }
        found
    }

    /// Passes `:value` or `:[list]`, whatever is in it.
    pub(super) fn skip_value(&mut self) {
        let mut depth = 0;
        while let Some(&token) = self.tokens.as_slice().first() {
            match token {
                "[" => depth += 1,
                "]" => depth -= 1,
                "," if depth <= 0 => return,
                _ => {}
            }
            self.next();
        }
    }

    pub(super) fn expect(&mut self, key: Key, mark: &'static str) -> Result<(), ConfError> {
        if self.take(mark) {
            return Ok(());
        }
        let found = self.tokens.as_slice().first().map(|&token| token.to_owned());
        Err(ConfError::Expected { key: key.name(), mark, found })
    }

    /// A comma, unless the string ends here.
    pub(super) fn end_of_option(&mut self) -> Result<(), ConfError> {
        let Some(&next) = self.tokens.as_slice().first() else { return Ok(()) };
        if self.take(",") {
            return Ok(());
        }
        Err(ConfError::NotAnOption { found: next.to_owned(), text: self.text.to_owned() })
    }

    pub(super) fn value(&mut self, key: Key) -> Result<&'t str, ConfError> {
        let word = self.next().filter(|token| !token.starts_with(MARKS));
        word.ok_or(ConfError::NoValue { key: key.name() })
    }

    pub(super) fn integer(
        &mut self,
        key: Key,
        expected: &str,
        fits: impl Fn(u64) -> bool,
    ) -> Result<u64, ConfError> {
        let text = self.value(key)?;
        self.numbers.integer(text).filter(|&n| fits(n)).ok_or_else(|| key.bad(text, expected))
    }

    pub(super) fn mebibytes(&mut self, key: Key, least: u64) -> Result<Bytes, ConfError> {
        let expected = format!("a whole number of MiB from {least} on");
        let mib = self.integer(key, &expected, |n| n >= least)?;
        Ok(Bytes(mib.min(u64::MAX / MIB) * MIB))
    }

    pub(super) fn number(
        &mut self,
        key: Key,
        expected: &str,
        fits: impl Fn(f64) -> bool,
    ) -> Result<f64, ConfError> {
        let text = self.value(key)?;
        number(text)
            .filter(|&x| fits(x))
            .ok_or_else(|| key.bad(text, &format!("a number {expected}")))
    }

    pub(super) fn boolean(&mut self, key: Key) -> Result<bool, ConfError> {
        match self.value(key)? {
            "True" => Ok(true),
            "False" => Ok(false),
            other => Err(key.bad(other, "True or False, with a capital letter")),
        }
    }
}
