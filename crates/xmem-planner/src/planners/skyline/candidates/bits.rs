//! Candidates as bits, for short lists: a set of ranks for each section at which an interval may begin, and for each
//! at which it may end. The first bit that both have is the answer.

use crate::instance::Item;

#[derive(Clone)]
pub(in crate::planners::skyline) struct Bits {
    /// The words of a set.
    words: usize,
    /// The ranks that are not taken.
    free: Vec<u64>,
    /// By section, `words` each: the ranks of the blocks that start there or later.
    starts: Vec<u64>,
    /// By section, `words` each: the ranks of the blocks that end there or earlier.
    ends: Vec<u64>,
}

impl Bits {
    pub(super) fn new(blocks: usize, sections: usize) -> Self {
        let words = blocks.div_ceil(64);
        let sets = || vec![0; words * (sections + 1)];
        Self { words, free: vec![0; words], starts: sets(), ends: sets() }
    }

    pub(super) fn fill(&mut self, blocks: &[Item], order: &[u32]) {
        let words = self.words;
        self.free.fill(0);
        self.starts.fill(0);
        self.ends.fill(0);
        for (rank, &block) in order.iter().enumerate() {
            let item = &blocks[block as usize];
            let (word, bit) = (rank / 64, 1 << (rank % 64));
            self.free[word] |= bit;
            self.starts[item.start as usize * words + word] |= bit;
            self.ends[item.end as usize * words + word] |= bit;
        }
        for place in (0..self.starts.len() - words).rev() {
            self.starts[place] |= self.starts[place + words];
        }
        for place in words..self.ends.len() {
            self.ends[place] |= self.ends[place - words];
        }
    }

    #[inline]
    pub(super) fn take(&mut self, start: u32, end: u32) -> Option<u32> {
        let set = |section: u32| section as usize * self.words..(section as usize + 1) * self.words;
        let (starts, ends) = (&self.starts[set(start)], &self.ends[set(end)]);
        let sets = self.free.iter().zip(starts).zip(ends);
        let mut both = sets.map(|((&free, &starts), &ends)| free & starts & ends);
        let word = both.position(|word| word != 0)?;
        let bit = (self.free[word] & starts[word] & ends[word]).trailing_zeros();
        self.free[word] &= !(1 << bit);
        Some(word as u32 * 64 + bit)
    }
}
