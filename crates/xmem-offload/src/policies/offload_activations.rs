//! torchtune's `OffloadActivations` (torchtune/training/_activation_offloading.py, with `use_streams`): saved tensors are
//! copied to pinned memory of the host on a stream of their own, and back in the backward pass.
//!
//! There, `max_fwd_stash_size` tensors may be on the device while their copies go on, and computing waits for the oldest
//! copy beyond that. Here the limit is in bytes, and holds for all saved tensors that wait: the last ones of the forward
//! pass, which are needed first, stay as far as they fit; all others are moved, computing waits where copies fall behind,
//! and what comes back ahead of its use is within the limit, too.

use super::PolicyRules;
use crate::budget::Budget;
use crate::graph::Graph;
use crate::prefetch::Window;
use crate::rules::Rules;
use crate::selection::{Selection, reads};
use std::collections::BTreeSet;
use xmem_types::{BlockId, Bytes};

/// The option of [`Policy::OffloadActivations`](crate::Policy::OffloadActivations).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffloadActivations {
    /// The bytes of saved tensors that may wait on the device.
    pub budget: Bytes,
}

impl PolicyRules for OffloadActivations {
    fn rules(&self, graph: &Graph) -> Rules {
        let budget = Budget::new(graph, self.budget);
        let stays = last_that_fit(graph, &budget);
        let selection = Selection::of(graph, |block, last_forward| {
            let moves = budget.waits.contains_key(&block) && !stays.contains(&block);
            moves.then(|| reads(graph.block(block)).next().unwrap_or(last_forward))
        });
        Rules { selection, prefetch, budget: Some(budget), ..Rules::nothing() }
    }
}

/// The last saved tensors of the forward pass, as many as fit.
fn last_that_fit(graph: &Graph, budget: &Budget) -> BTreeSet<BlockId> {
    let mut blocks: Vec<BlockId> = budget.waits.keys().copied().collect();
    blocks.sort_by_key(|block| std::cmp::Reverse((budget.waits[block].last_forward, *block)));
    let mut left = budget.limit;
    let fits = |block: &BlockId| {
        let size = graph.block(*block).size;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    };
    blocks.into_iter().take_while(fits).collect()
}

/// All that follows, in the order in which it is needed: the budget says how much of it.
fn prefetch(window: &Window<'_>) -> Vec<BlockId> {
    window.following().iter().flat_map(|visit| window.away(visit)).collect()
}
