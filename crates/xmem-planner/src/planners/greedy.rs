//! `greedy-by-size`: one block after the other, in an order that lifetimes and sizes give, each at the lowest or the
//! tightest place that is free while it lives (Pisarchyk & Lee, "Efficient memory management for deep neural net
//! inference"; MemoMalloc; the default of TensorFlow Lite).

use super::Placed;
use super::peaks::peaks;
use super::shelf::{Fit, Shelf};
use crate::budget::Budget;
use crate::instance::{Instance, Item};
use std::cmp::Reverse;

/// The blocks that are placed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GreedyOrder {
    /// The largest ones; of equal size, those that live longest.
    Size,
    /// The largest ones; of equal size, those that start first.
    SizeBirth,
    /// Those with the largest product of size and lifetime.
    Area,
    /// Those that live longest.
    Longest,
    /// Those that start first.
    Birth,
    /// Those that are live when most bytes are live.
    Contention,
}

/// Offsets; `None` if the time is over before all blocks are placed.
pub(crate) fn place(
    instance: &Instance,
    fit: Fit,
    by: GreedyOrder,
    budget: &Budget,
) -> Option<Placed> {
    let offsets = Shelf::new(instance, fit).place(&order(instance, by), budget)?;
    Some(Placed::heuristic(offsets))
}

/// The blocks by preference. Ties are broken by size, lifetime, start and id, in this order.
pub(crate) fn order(instance: &Instance, by: GreedyOrder) -> Vec<u32> {
    let crowds = match by {
        GreedyOrder::Contention => peaks(instance, instance.loads.clone()),
        _ => Vec::new(),
    };
    let mut order: Vec<u32> = (0..instance.blocks.len() as u32).collect();
    order.sort_by_cached_key(|&block| {
        let item: &Item = &instance.blocks[block as usize];
        let first = match by {
            GreedyOrder::Size => u128::from(item.size),
            GreedyOrder::SizeBirth => {
                (u128::from(item.size) << 32) | u128::from(u32::MAX - item.start)
            }
            GreedyOrder::Area => u128::from(item.size) * u128::from(item.ticks),
            GreedyOrder::Longest => u128::from(item.ticks),
            GreedyOrder::Birth => u128::from(u32::MAX - item.start),
            GreedyOrder::Contention => u128::from(crowds[block as usize]),
        };
        (Reverse((first, item.size, item.ticks)), item.start, block)
    });
    order
}
