//! The largest value of the sections in which a block lives, for all blocks.

use crate::instance::Instance;

/// By block: the largest of the `values`, one for each section, while it lives.
pub(super) fn peaks(instance: &Instance, values: Vec<u64>) -> Vec<u64> {
    // The largest of the 2^k sections from each one on, for all k.
    let mut powers = vec![values];
    for k in 0..instance.loads.len().checked_ilog2().unwrap_or(0) {
        let last = &powers[k as usize];
        let next = last.iter().zip(&last[1 << k..]).map(|(&one, &later)| one.max(later)).collect();
        powers.push(next);
    }
    let peak = |start: u32, end: u32| {
        let k = (end - start).ilog2();
        let values = &powers[k as usize];
        values[start as usize].max(values[(end - (1 << k)) as usize])
    };
    instance.blocks.iter().map(|item| peak(item.start, item.end)).collect()
}
