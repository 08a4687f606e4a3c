//! Blocks that are placed, by offset: finds room for the next one between those that it conflicts with.

use crate::instance::Item;

/// The most blocks of a chunk: the bits of the mask of those that conflict.
const CHUNK: usize = 64;

/// Which of the gaps that are large enough a block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The smallest one, and of these the lowest.
    Best,
    /// The lowest one.
    First,
}

/// The blocks that are placed, in chunks by offset.
#[derive(Default)]
pub(super) struct Shelf {
    chunks: Vec<Chunk>,
}

/// Some blocks in the order of their offsets: one array for each property, so that conflicts are found several
/// at a time.
#[derive(Default)]
struct Chunk {
    starts: Vec<u32>,
    ends: Vec<u32>,
    offsets: Vec<u64>,
    tops: Vec<u64>,
}

impl Shelf {
    /// Places a block between those that are there, and returns its offset: the bottom of a gap, or the end
    /// of the highest block that it conflicts with.
    pub(super) fn place(&mut self, item: &Item, fit: Fit) -> u64 {
        let offset = self.room(item, fit);
        self.insert(item, offset);
        offset
    }

    fn room(&self, item: &Item, fit: Fit) -> u64 {
        let (mut top, mut best) = (0, None);
        for chunk in &self.chunks {
            let mut conflicts = chunk.conflicts(item);
            while conflicts != 0 {
                let index = conflicts.trailing_zeros() as usize;
                conflicts &= conflicts - 1;
                let gap = chunk.offsets[index].saturating_sub(top);
                if gap >= item.size {
                    match fit {
                        Fit::First => return top,
                        Fit::Best if best.is_none_or(|(least, _)| gap < least) => {
                            best = Some((gap, top));
                        }
                        Fit::Best => {}
                    }
                }
                top = top.max(chunk.tops[index]);
            }
        }
        best.map_or(top, |(_, bottom)| bottom)
    }

    fn insert(&mut self, item: &Item, offset: u64) {
        let at = self.chunks.partition_point(|chunk| chunk.offsets[0] < offset).saturating_sub(1);
        if self.chunks.is_empty() {
            self.chunks.push(Chunk::default());
        }
        let chunk = &mut self.chunks[at];
        let index = chunk.offsets.partition_point(|&other| other < offset);
        chunk.starts.insert(index, item.start);
        chunk.ends.insert(index, item.end);
        chunk.offsets.insert(index, offset);
        chunk.tops.insert(index, offset + item.size);
        if chunk.starts.len() == CHUNK {
            let upper = chunk.split();
            self.chunks.insert(at + 1, upper);
        }
    }
}

impl Chunk {
    /// One bit for each block: whether it conflicts.
    fn conflicts(&self, item: &Item) -> u64 {
        let lives = self.starts.iter().zip(&self.ends);
        let mask = lives.enumerate().map(|(index, (&start, &end))| {
            u64::from((start < item.end) & (item.start < end)) << index
        });
        mask.fold(0, |mask, bit| mask | bit)
    }

    fn split(&mut self) -> Self {
        let half = self.starts.len() / 2;
        Self {
            starts: self.starts.split_off(half),
            ends: self.ends.split_off(half),
            offsets: self.offsets.split_off(half),
            tops: self.tops.split_off(half),
        }
    }
}
