//! `bestfit`: on the [skyline](super::skyline), the block that lives longest (Sekiyama et al., "Profile-guided memory
//! optimization for deep neural networks"). Of blocks that live equally long, which the paper leaves open, the larger
//! one, then the one that starts earlier, then the one with the lower id. Lifetimes are counted in
//! requests, as in the paper.

use super::{Placed, skyline};
use crate::instance::Instance;
use std::cmp::Reverse;

pub(crate) fn place(instance: &Instance) -> Placed {
    Placed::heuristic(skyline::place(instance, &order(instance)))
}

/// The blocks by preference.
pub(crate) fn order(instance: &Instance) -> Vec<u32> {
    let mut order: Vec<u32> = (0..instance.blocks.len() as u32).collect();
    order.sort_by_key(|&block| {
        let item = &instance.blocks[block as usize];
        (Reverse(item.requests), Reverse(item.size), item.start, block)
    });
    order
}
