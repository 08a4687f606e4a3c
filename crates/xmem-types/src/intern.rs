//! Interned strings.

use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A string in an [`Interner`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sym(pub u32);

impl Sym {
    /// The empty string: symbol 0 of every interner.
    pub const EMPTY: Self = Self(0);

    /// The symbol's row.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Each distinct string once, with a small id. Symbol 0 is always the empty string.
#[derive(Clone, Debug)]
pub struct Interner {
    by_text: FxHashMap<Arc<str>, Sym>,
    texts: Vec<Arc<str>>,
}

impl Default for Interner {
    fn default() -> Self {
        let mut interner = Self { by_text: FxHashMap::default(), texts: Vec::new() };
        interner.intern("");
        interner
    }
}

impl Interner {
    /// The symbol of `text`, made if it is new.
    ///
    /// # Panics
    /// If there are more than `u32::MAX` strings.
    pub fn intern(&mut self, text: &str) -> Sym {
        if let Some(&sym) = self.by_text.get(text) {
            return sym;
        }
        let sym = Sym(u32::try_from(self.texts.len()).expect("more than u32::MAX strings"));
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.by_text.insert(text, sym);
        sym
    }

    /// The symbol of `text`, if it was interned.
    #[must_use]
    pub fn get(&self, text: &str) -> Option<Sym> {
        self.by_text.get(text).copied()
    }

    /// The string behind `sym`.
    ///
    /// # Panics
    /// If `sym` comes from another interner.
    #[must_use]
    pub fn resolve(&self, sym: Sym) -> &str {
        &self.texts[sym.index()]
    }

    /// Every string, in the order of its symbol.
    pub fn iter(&self) -> impl Iterator<Item = (Sym, &str)> {
        self.texts.iter().enumerate().map(|(i, t)| (Sym(i as u32), &**t))
    }

    /// The number of distinct strings, the empty one included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Never true: the empty string is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_a_symbol_and_empty_is_zero() {
        let mut strings = Interner::default();
        let a = strings.intern("aten::mm");
        assert_eq!(strings.intern("aten::mm"), a);
        assert_eq!(strings.intern(""), Sym::EMPTY);
        assert_eq!(strings.resolve(a), "aten::mm");
        assert_eq!(strings.get("aten::bmm"), None);
    }
}
