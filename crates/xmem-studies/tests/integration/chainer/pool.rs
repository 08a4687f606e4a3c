//! CuPy's memory pool, which Chainer uses: sizes are multiples of 512 bytes, what is missing is allocated from the device in
//! its size, and nothing goes back to the device.

use std::collections::{BTreeMap, BTreeSet};
use xmem_studies::planner::PlannedBlock;

/// The release of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    /// Before July 2017: a free block serves requests of its own size.
    ExactSizes,
    /// Since pull request 168 of cupy/cupy: best fit, free blocks are split and joined.
    BestFit,
}

/// The bytes that the pool takes from the device for these blocks.
pub(super) fn reserved(pool: Pool, blocks: &[PlannedBlock]) -> u64 {
    let mut events: Vec<(u32, bool, usize)> = Vec::new();
    for (id, block) in blocks.iter().enumerate() {
        events.extend([(block.start, true, id), (block.end, false, id)]);
    }
    // At the same tick, frees come first.
    events.sort_unstable();
    let mut state = State { pool, ..State::default() };
    let mut chunks: BTreeMap<usize, Chunk> = BTreeMap::new();
    for (_, is_made, id) in events {
        if is_made {
            chunks.insert(id, state.take(blocks[id].size.get().next_multiple_of(512)));
        } else {
            let chunk = chunks.remove(&id).expect("made before");
            state.give_back(chunk);
        }
    }
    state.reserved
}

/// A part of what was allocated from the device at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Chunk {
    size: u64,
    segment: usize,
    offset: u64,
}

#[derive(Debug)]
struct State {
    pool: Pool,
    free: BTreeSet<Chunk>,
    segments: usize,
    reserved: u64,
}

impl Default for State {
    fn default() -> Self {
        Self { pool: Pool::BestFit, free: BTreeSet::new(), segments: 0, reserved: 0 }
    }
}

impl State {
    fn take(&mut self, size: u64) -> Chunk {
        let least = Chunk { size, segment: 0, offset: 0 };
        let found = self.free.range(least..).next().copied();
        let found = found.filter(|chunk| self.pool == Pool::BestFit || chunk.size == size);
        let Some(chunk) = found else {
            self.reserved += size;
            self.segments += 1;
            return Chunk { size, segment: self.segments, offset: 0 };
        };
        self.free.remove(&chunk);
        if chunk.size > size {
            let (rest, offset) = (chunk.size - size, chunk.offset + size);
            self.free.insert(Chunk { size: rest, segment: chunk.segment, offset });
        }
        Chunk { size, ..chunk }
    }

    fn give_back(&mut self, mut chunk: Chunk) {
        if self.pool == Pool::BestFit {
            let segment: Vec<Chunk> =
                self.free.iter().filter(|free| free.segment == chunk.segment).copied().collect();
            for free in segment {
                if free.offset + free.size == chunk.offset
                    || chunk.offset + chunk.size == free.offset
                {
                    self.free.remove(&free);
                    chunk.offset = chunk.offset.min(free.offset);
                    chunk.size += free.size;
                }
            }
        }
        self.free.insert(chunk);
    }
}

#[test]
fn free_chunks_are_split_and_joined_or_kept_by_size() {
    let block =
        |start, end, size| PlannedBlock { size: xmem::Bytes(size), start, end, operator: None };
    // 2 KiB are free when 1 KiB and 1 KiB are requested, and joined when 2 KiB are.
    let blocks = [block(0, 1, 2048), block(2, 4, 1000), block(3, 5, 1024), block(6, 7, 2048)];
    assert_eq!(reserved(Pool::BestFit, &blocks), 2048);
    assert_eq!(reserved(Pool::ExactSizes, &blocks), 4096);
}
