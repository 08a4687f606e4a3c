//! Selective activation checkpointing: saved tensors are dropped and computed again, those that cost the least time for
//! their bytes first, until the others fit in a budget.
//!
//! `create_selective_checkpoint_contexts` (torch/utils/checkpoint.py) lets the user name the operators whose results are
//! saved; with a budget, `torch.compile` chooses them (`activation_memory_budget` of torch/_functorch/config.py, a knapsack
//! in torch/_functorch/_activation_checkpointing/knapsack.py). A tensor can be computed again if what it is made of is
//! saved, or can be computed again itself; it then stays until its backward pass frees it.

use super::PolicyRules;
use crate::budget::Budget;
use crate::event_loop::{Memory, run};
use crate::graph::{Graph, StepId};
use crate::recomputation::Recomputations;
use crate::rules::Rules;
use crate::selection::Selection;
use crate::transfer::{Duplex, Link};
use std::collections::{BTreeMap, BTreeSet};
use xmem_types::{BlockId, Bytes, Nanos};

/// The option of [`Policy::Checkpoint`](crate::Policy::Checkpoint).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Checkpoint {
    /// The bytes of saved tensors that may wait on the device.
    pub budget: Bytes,
}

/// The knapsack counts bytes in this many parts of what has to go.
const PARTS: usize = 1024;

/// The parts of the budget that are tried as the limit of what is kept: what is computed again takes memory, too.
const TRIES: u128 = 16;

impl PolicyRules for Checkpoint {
    fn rules(&self, graph: &Graph) -> Rules {
        let budget = Budget::new(graph, self.budget);
        let mut all = Recomputations::new(graph, &Selection::default(), |_| true);
        all.of.retain(|block, _| budget.waits.contains_key(block));
        let items = items(graph, &all);
        let saved = budget.saved(graph);
        let mut best: Option<(Bytes, Rules)> = None;
        let mut tried: BTreeSet<Vec<BlockId>> = BTreeSet::new();
        for part in (0..=TRIES).rev() {
            let kept = u128::from(self.budget.get()) * part / TRIES;
            let kept = Bytes(u64::try_from(kept).expect("no more than the budget"));
            let dropped = cheapest(&items, saved.saturating_sub(kept));
            if !tried.insert(dropped.iter().copied().collect()) {
                continue;
            }
            let mut recomputations = all.clone();
            recomputations.of.retain(|block, _| dropped.contains(block));
            let budget = Some(budget.clone());
            let rules = Rules { recomputations, budget, ..Rules::nothing() };
            let most = most_waiting(graph, &rules);
            if best.as_ref().is_none_or(|(least, _)| most < *least) {
                best = Some((most, rules));
            }
            // More would be computed again with less of it.
            if most <= self.budget {
                break;
            }
        }
        best.expect("one is tried").1
    }
}

/// The most bytes that wait with these rules; nothing is copied, so any link gives the same.
fn most_waiting(graph: &Graph, rules: &Rules) -> Bytes {
    let link = Link { bandwidth: Bytes(1), latency: Nanos::ZERO, duplex: Duplex::Half };
    let run = run(graph, rules.clone(), &link, Memory::Unlimited);
    run.waiting.map_or(Bytes::ZERO, |waiting| waiting.most)
}

/// Tensors that the same steps write.
struct Item {
    blocks: Vec<BlockId>,
    size: Bytes,
    time: Nanos,
}

fn items(graph: &Graph, all: &Recomputations) -> Vec<Item> {
    let mut items: BTreeMap<&[StepId], Item> = BTreeMap::new();
    for (&block, made) in &all.of {
        let item = items.entry(&made.steps).or_insert_with(|| Item {
            blocks: Vec::new(),
            size: Bytes::ZERO,
            time: made.steps.iter().map(|step| graph.steps()[step.index()].duration).sum(),
        });
        item.blocks.push(block);
        item.size += graph.block(block).size;
    }
    items.into_values().collect()
}

/// The tensors of the least time that have `need` bytes together; all of them if they have less.
fn cheapest(items: &[Item], need: Bytes) -> BTreeSet<BlockId> {
    if need == Bytes::ZERO {
        return BTreeSet::new();
    }
    // The least time for each number of parts, and whether an item is among those that take it.
    let unit = need.get().div_ceil(PARTS as u64);
    let parts = usize::try_from(need.get().div_ceil(unit)).expect("at most PARTS");
    let mut least: Vec<Option<i64>> = vec![None; parts + 1];
    least[0] = Some(0);
    let mut takes = vec![false; items.len() * (parts + 1)];
    for (row, item) in items.iter().enumerate() {
        let has = usize::try_from(item.size.get() / unit).unwrap_or(parts).min(parts);
        for wanted in (1..=parts).rev() {
            let Some(before) = least[wanted.saturating_sub(has)] else { continue };
            let time = before + item.time.get();
            if has > 0 && least[wanted].is_none_or(|known| time < known) {
                least[wanted] = Some(time);
                takes[row * (parts + 1) + wanted] = true;
            }
        }
    }
    let all = || items.iter().flat_map(|item| item.blocks.iter().copied()).collect();
    if least[parts].is_none() {
        return all();
    }
    let mut wanted = parts;
    let mut taken = BTreeSet::new();
    for (row, item) in items.iter().enumerate().rev() {
        if takes[row * (parts + 1) + wanted] {
            taken.extend(item.blocks.iter().copied());
            let has = usize::try_from(item.size.get() / unit).unwrap_or(parts);
            wanted = wanted.saturating_sub(has);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(block: u32, size: u64, time: i64) -> Item {
        Item { blocks: vec![BlockId(block)], size: Bytes(size), time: Nanos(time) }
    }

    #[test]
    fn the_least_time_that_frees_enough_is_taken() {
        let items = [item(0, 4, 10), item(1, 3, 4), item(2, 3, 5), item(3, 8, 30)];
        for (need, expected) in [
            (0, vec![]),
            (3, vec![1]),
            (4, vec![1, 2]),
            (6, vec![1, 2]),
            (7, vec![0, 1]),
            (10, vec![0, 1, 2]),
            (11, vec![1, 3]),
            (99, vec![0, 1, 2, 3]),
        ] {
            let taken: Vec<u32> =
                cheapest(&items, Bytes(need)).iter().map(|block| block.0).collect();
            assert_eq!(taken, expected, "{need}");
        }
    }
}
