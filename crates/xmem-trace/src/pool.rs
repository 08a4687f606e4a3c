//! A table of distinct byte strings in one buffer.

use rustc_hash::FxHasher;
use std::hash::Hasher;

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

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, row: usize) -> &[u8] {
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
