//! The strings of one chunk.

use crate::builder::Strings;
use crate::columns::SignatureId;
use crate::rawtext::compact_into;
use crate::seen::Seen;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use xmem_types::Sym;

/// More raw JSON than this is not remembered from one chunk to the next.
const MOST_RAW: usize = 1 << 20;

/// The distinct strings of one chunk in the order of their first appearance, the empty one first.
/// All memory is kept for the next chunk.
#[derive(Debug)]
pub(crate) struct LocalStrings {
    texts: Pool,
    /// Lent by the parser while it fills the columns.
    pub(crate) memory: Memory,
}

/// What a parser remembers from one chunk to the next: nothing that shows in the result.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) seen: Seen,
    /// Raw JSON as it stands in the file.
    raws: Pool,
    /// What each of `raws` is without white space.
    compact: Vec<Compact>,
    chunk: u64,
}

/// Compacted JSON, and its symbol in the chunk where it was used last.
#[derive(Debug)]
struct Compact {
    text: Box<str>,
    chunk: u64,
    sym: Sym,
}

impl Memory {
    /// A new chunk begins: symbols of the last one mean nothing any more.
    pub(crate) fn next_chunk(&mut self) {
        self.chunk += 1;
        self.seen.next_chunk();
        if self.raws.size() > MOST_RAW {
            self.raws.clear();
            self.compact.clear();
        }
    }
}

impl Default for LocalStrings {
    fn default() -> Self {
        let mut strings = Self { texts: Pool::default(), memory: Memory::default() };
        strings.clear();
        strings
    }
}

impl LocalStrings {
    pub(crate) fn clear(&mut self) {
        self.texts.clear();
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
        let memory = &mut self.memory;
        let (row, new) = memory.raws.insert(raw);
        if new {
            let mut text = String::with_capacity(raw.len());
            compact_into(&String::from_utf8_lossy(raw), &mut text);
            memory.compact.push(Compact { text: text.into(), chunk: 0, sym: Sym::EMPTY });
        }
        let compact = &mut memory.compact[row as usize];
        if compact.chunk != memory.chunk {
            compact.chunk = memory.chunk;
            compact.sym = Sym(self.texts.insert(compact.text.as_bytes()).0);
        }
        compact.sym
    }

    #[inline]
    fn known_signature(&self, row: u32) -> Option<SignatureId> {
        self.memory.seen.signature(row)
    }

    fn know_signature(&mut self, row: u32, signature: SignatureId) {
        self.memory.seen.set_signature(row, signature);
    }
}

/// Byte strings, each once, end to end in one buffer; found by open addressing.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Upper half of the hash, row + 1 (0: free); a power of two of them.
    slots: Vec<(u32, u32)>,
}

impl Pool {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.slots.fill((0, 0));
    }

    /// Bytes of all texts.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.bytes[start..self.ends[row] as usize]
    }

    /// The row of `text`, if it is there.
    #[inline]
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.look_up(text, hash(text)).ok()
    }

    /// The row of `text`, or else the slot where it belongs. There are slots.
    #[inline]
    fn look_up(&self, text: &[u8], hash: u64) -> Result<u32, usize> {
        let tag = (hash >> 32) as u32;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let (known, row) = self.slots[at];
            if row == 0 {
                return Err(at);
            }
            if known == tag && self.get(row as usize - 1) == text {
                return Ok(row - 1);
            }
            at = (at + 1) & mask;
        }
    }

    /// The row of `text`, and whether it is new.
    pub(crate) fn insert(&mut self, text: &[u8]) -> (u32, bool) {
        if self.slots.len() < 2 * (self.ends.len() + 1) {
            self.grow();
        }
        let hash = hash(text);
        let at = match self.look_up(text, hash) {
            Ok(row) => return (row, false),
            Err(at) => at,
        };
        let row = u32::try_from(self.ends.len()).expect("a chunk has fewer than 2^32 strings");
        self.bytes.extend_from_slice(text);
        self.ends.push(u32::try_from(self.bytes.len()).expect("a chunk is shorter than 4 GiB"));
        self.slots[at] = ((hash >> 32) as u32, row + 1);
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
            strings.memory.next_chunk();
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
