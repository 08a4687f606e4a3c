//! The strings of one chunk.

use crate::builder::Strings;
use crate::rawtext::compact_into;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use xmem_types::Sym;

/// The distinct strings of one chunk in the order of their first appearance, the empty one first.
/// All memory is kept for the next chunk.
#[derive(Debug)]
pub(crate) struct LocalStrings {
    texts: Pool,
    /// Raw JSON as it stands in the file; `compact` has the symbol of each.
    raws: Pool,
    compact: Vec<Sym>,
    scratch: String,
}

impl Default for LocalStrings {
    fn default() -> Self {
        let mut strings = Self {
            texts: Pool::default(),
            raws: Pool::default(),
            compact: Vec::new(),
            scratch: String::new(),
        };
        strings.clear();
        strings
    }
}

impl LocalStrings {
    pub(crate) fn clear(&mut self) {
        self.texts.clear();
        self.raws.clear();
        self.compact.clear();
        self.texts.insert(b"");
    }

    /// Every string, in the order of its symbol.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.texts.len()).map(|row| {
            std::str::from_utf8(self.texts.get(row)).expect("only whole strings are interned")
        })
    }
}

impl Strings for LocalStrings {
    fn intern(&mut self, text: &str) -> Sym {
        Sym(self.texts.insert(text.as_bytes()).0)
    }

    fn intern_compact(&mut self, raw: &[u8]) -> Sym {
        let (row, new) = self.raws.insert(raw);
        if !new {
            return self.compact[row as usize];
        }
        self.scratch.clear();
        compact_into(&String::from_utf8_lossy(raw), &mut self.scratch);
        let sym = Sym(self.texts.insert(self.scratch.as_bytes()).0);
        self.compact.push(sym);
        sym
    }
}

/// Byte strings, each once, end to end in one buffer; found by open addressing.
#[derive(Debug, Default)]
struct Pool {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Upper half of the hash, row + 1 (0: free); a power of two of them.
    slots: Vec<(u32, u32)>,
}

impl Pool {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.slots.fill((0, 0));
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.bytes[start..self.ends[row] as usize]
    }

    /// The row of `text`, and whether it is new.
    fn insert(&mut self, text: &[u8]) -> (u32, bool) {
        if self.slots.len() < 2 * (self.ends.len() + 1) {
            self.grow();
        }
        let hash = hash(text);
        let tag = (hash >> 32) as u32;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let (known, row) = self.slots[at];
            if row == 0 {
                break;
            }
            if known == tag && self.get(row as usize - 1) == text {
                return (row - 1, false);
            }
            at = (at + 1) & mask;
        }
        let row = u32::try_from(self.ends.len()).expect("a chunk has fewer than 2^32 strings");
        self.bytes.extend_from_slice(text);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a chunk is shorter than 4 GiB"));
        self.slots[at] = (tag, row + 1);
        (row, true)
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(256);
        self.slots.clear();
        self.slots.resize(size, (0, 0));
        for row in 0..self.ends.len() {
            let hash = hash(self.get(row));
            let mut at = hash as usize & (size - 1);
            while self.slots[at].1 != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = ((hash >> 32) as u32, row as u32 + 1);
        }
    }
}

fn hash(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_keep_their_order_and_raw_text_is_compacted_once() {
        let mut strings = LocalStrings::default();
        for round in 0..2 {
            let a = strings.intern("aten::mm");
            let dims = strings.intern_compact(b"[[2, 3], []]");
            assert_eq!(strings.intern_compact(b"[[2, 3], []]"), dims);
            assert_eq!(strings.intern_compact(b"[[2,3],[]]"), dims);
            assert_eq!(strings.intern("aten::mm"), a);
            assert_eq!(strings.intern(""), Sym::EMPTY);
            let all: Vec<_> = strings.iter().collect();
            assert_eq!(all, ["", "aten::mm", "[[2,3],[]]"], "round {round}");
            strings.clear();
        }
    }

    #[test]
    fn many_strings_survive_growth() {
        let mut strings = LocalStrings::default();
        let syms: Vec<Sym> = (0..5000).map(|i| strings.intern(&format!("s{i}"))).collect();
        for (i, sym) in syms.iter().enumerate() {
            assert_eq!(strings.intern(&format!("s{i}")), *sym);
        }
        assert_eq!(strings.iter().count(), 5001);
    }
}
