//! The strings of one chunk.

use crate::argument_cache::ArgumentCache;
use crate::builder::Strings;
use crate::columns::SignatureId;
use crate::pool::Pool;
use crate::rawtext::compact_into;
use xmem_types::Sym;

/// Bytes of raw JSON beyond which the cache is emptied before the next chunk.
const RAW_CACHE_LIMIT: usize = 1 << 20;

/// The distinct strings of one chunk in the order of their first appearance, the empty one first.
/// All memory is kept for the next chunk.
#[derive(Debug)]
pub(crate) struct LocalStrings {
    texts: Pool,
    /// Lent by the parser while it fills the columns.
    pub(crate) memory: Memory,
}

/// The memory of a parser from one chunk to the next: nothing that shows in the result.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) arguments: ArgumentCache,
    /// Raw JSON as it stands in the file.
    raws: Pool,
    /// Each of `raws` without white space.
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
        self.arguments.next_chunk();
        if self.raws.size() > RAW_CACHE_LIMIT {
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
        self.memory.arguments.signature(row)
    }

    fn set_signature(&mut self, row: u32, signature: SignatureId) {
        self.memory.arguments.set_signature(row, signature);
    }
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
