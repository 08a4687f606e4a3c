//! Lists for tests and benches: the public instances of MiniMalloc (`tests/minimalloc`), and lists as training has them.

use xmem_planner::{BlockList, PlannedBlock, read_csv};
use xmem_types::Bytes;

/// The instances, by name.
pub(crate) const MINIMALLOC: [(&str, &[u8]); 6] = [
    ("A", include_bytes!("../../minimalloc/A.1048576.csv")),
    ("C", include_bytes!("../../minimalloc/C.1048576.csv")),
    ("E", include_bytes!("../../minimalloc/E.1048576.csv")),
    ("G", include_bytes!("../../minimalloc/G.1048576.csv")),
    ("I", include_bytes!("../../minimalloc/I.1048576.csv")),
    ("K", include_bytes!("../../minimalloc/K.1048576.csv")),
];

/// An instance as a list.
pub(crate) fn minimalloc(text: &[u8]) -> BlockList {
    read_csv(text).expect("a list").list
}

/// A list of about `blocks` blocks in the manner of a recorded training job: iterations of some hundred layers.
/// A layer keeps an activation until its backward pass, which runs in reverse; both passes have temporaries, and
/// gradients live until the end of the iteration. Sizes are multiples of 512 and repeat.
pub(crate) fn training(blocks: usize, seed: u64) -> BlockList {
    let (mut list, mut tick, mut random) = (Vec::with_capacity(blocks), 0, Random(seed));
    let layers = 120;
    while list.len() < blocks {
        let mut kept = Vec::new();
        for _ in 0..layers {
            temporaries(&mut list, &mut tick, &mut random);
            for _ in 0..2 {
                kept.push((random.size(), tick));
                tick += 1;
            }
        }
        let mut gradients = Vec::new();
        for layer in (0..layers).rev() {
            temporaries(&mut list, &mut tick, &mut random);
            gradients.push((random.size() / 4 + 512, tick));
            tick += 1;
            for (size, start) in kept.drain(2 * layer..) {
                list.push(block(size, start, tick));
                tick += 1;
            }
        }
        for (size, start) in gradients {
            list.push(block(size, start, tick));
            tick += 1;
        }
    }
    BlockList::new(list).expect("a list")
}

/// Blocks that live for some ticks, each freed after the next one is there.
fn temporaries(list: &mut Vec<PlannedBlock>, tick: &mut u32, random: &mut Random) {
    for _ in 0..random.below(6) {
        list.push(block(random.size(), *tick, *tick + 3));
        *tick += 2;
    }
    *tick += 2;
}

fn block(size: u64, start: u32, end: u32) -> PlannedBlock {
    PlannedBlock { size: Bytes(size.next_multiple_of(512)), start, end, operator: None }
}

/// A generator of numbers that are the same everywhere (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }

    /// From 512 bytes to some MiB: small ones are as frequent as large ones.
    fn size(&mut self) -> u64 {
        (512 << self.below(14) << self.below(2)) | (self.below(4) * 512)
    }
}
