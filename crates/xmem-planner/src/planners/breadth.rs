//! `greedy-by-breadth`: one operator after the other, the one with the most bytes live first, and of an operator's
//! blocks the largest one first (Pisarchyk & Lee, "Efficient memory management for deep neural net inference").

use super::Placed;
use super::peaks::peaks;
use super::shelf::{Fit, Shelf};
use crate::budget::Budget;
use crate::instance::Instance;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// True if some block has an operator.
pub(crate) fn applies(instance: &Instance) -> bool {
    instance.blocks.is_empty() || instance.blocks.iter().any(|item| item.operator.is_some())
}

/// Offsets; `None` if the time is over before all blocks are placed.
///
/// An operator is the section with the largest load of those in which it makes a block; its blocks are all that
/// are live then. Blocks that are live at no operator come last.
pub(crate) fn place(instance: &Instance, budget: &Budget) -> Option<Placed> {
    let mut sections: BTreeMap<u32, u32> = BTreeMap::new();
    for item in &instance.blocks {
        let Some(operator) = item.operator else { continue };
        let section = sections.entry(operator).or_insert(item.start);
        let rank = |section: u32| (instance.loads[section as usize], Reverse(section));
        if rank(item.start) > rank(*section) {
            *section = item.start;
        }
    }
    let mut operators: Vec<(u32, u32)> = sections.into_iter().collect();
    operators.sort_by_key(|&(operator, section)| {
        (Reverse(instance.loads[section as usize]), section, operator)
    });
    let mut blocks: Vec<u32> = (0..instance.blocks.len() as u32).collect();
    blocks.sort_by_key(|&block| {
        let item = &instance.blocks[block as usize];
        (Reverse((item.size, item.ticks)), item.start, block)
    });
    // By section: larger for the operators that come first, and zero without one.
    let mut urgency = vec![0; instance.loads.len()];
    for (turn, &(_, section)) in operators.iter().enumerate().rev() {
        urgency[section as usize] = (operators.len() - turn) as u64;
    }
    let urgency = peaks(instance, urgency);
    // A stable sort: blocks of one operator stay in the order of their sizes.
    blocks.sort_by_key(|&block| Reverse(urgency[block as usize]));
    let offsets = Shelf::new(instance, Fit::Best).place(&blocks, budget)?;
    Some(Placed::heuristic(offsets))
}
