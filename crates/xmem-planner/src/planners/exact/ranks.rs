//! The orders in which the search tries blocks whose lowest places are the same.

use crate::instance::Instance;
use crate::planners::peaks::peaks;
use fastrand::Rng;
use std::cmp::Reverse;

/// The noise in random orders: each restart takes the next.
const NOISE: [f64; 3] = [0.3, 1.0, 3.0];

/// The orders for the blocks of an instance.
pub(super) struct Orders {
    seed: u64,
    /// By block: the sections in which it is live, its size, and the load of its fullest section.
    measures: Vec<[u64; 3]>,
}

impl Orders {
    pub(super) fn new(instance: &Instance, seed: u64) -> Self {
        let totals = peaks(instance, instance.loads.clone());
        let measures = instance.blocks.iter().zip(totals);
        let measures = measures
            .map(|(item, total)| [u64::from(item.end - item.start), item.size, total])
            .collect();
        Self { seed, measures }
    }

    /// The ranks of all blocks for the `nth` search: first three orders as those of MiniMalloc (lifetime, size or area,
    /// and the load of the fullest section, in different orders of importance), then products of powers of the three
    /// measures, by chance.
    pub(super) fn ranks(&self, nth: u64) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.measures.len() as u32).collect();
        let of = |block: u32| self.measures[block as usize];
        match nth {
            0 => order.sort_by_key(|&block| Reverse(of(block))),
            1 => order.sort_by_key(|&block| {
                let [width, size, total] = of(block);
                Reverse([total, size.saturating_mul(width), width])
            }),
            2 => order.sort_by_key(|&block| {
                let [width, size, total] = of(block);
                Reverse([total, width, size])
            }),
            _ => {
                let mut random =
                    Rng::with_seed(self.seed.wrapping_mul(0x1_0000_0001).wrapping_add(nth));
                let powers = [random.f64() * 2.0, random.f64() * 2.0, random.f64() * 6.0];
                let noise = NOISE[(nth % 3) as usize];
                let keys: Vec<f64> = self
                    .measures
                    .iter()
                    .map(|measures| {
                        let logs =
                            measures.iter().zip(powers).map(|(&m, power)| (m as f64).ln() * power);
                        logs.sum::<f64>() + (random.f64() - 0.5) * noise
                    })
                    .collect();
                order.sort_by(|&one, &other| {
                    keys[other as usize].total_cmp(&keys[one as usize]).then(one.cmp(&other))
                });
            }
        }
        let mut ranks = vec![0; order.len()];
        for (rank, &block) in order.iter().enumerate() {
            ranks[block as usize] = rank as u32;
        }
        ranks
    }
}
