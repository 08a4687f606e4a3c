//! Gradients that are allocated once and kept, as frameworks with static graphs have them.

use crate::graph::{Action, BlockRole, Graph, GraphError};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use xmem_types::{BlockId, Bytes};

/// The memory of the gradients of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GradientRule {
    /// As recorded: PyTorch frees them before each step (`zero_grad` with `set_to_none`, torch/optim/optimizer.py) and
    /// allocates them in the backward pass.
    #[default]
    Recorded,
    /// Allocated before the step and never freed: Dymem's weights and their gradients are static, and its pool has feature
    /// maps only (HPDC 2020, section 2).
    Preallocated,
}

/// Text that names no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is neither recorded nor preallocated")]
pub struct ParseGradientRuleError(String);

impl GradientRule {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Recorded, Self::Preallocated];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Preallocated => "preallocated",
        }
    }
}

impl fmt::Display for GradientRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for GradientRule {
    type Err = ParseGradientRuleError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|rule| rule.name() == name);
        named.ok_or_else(|| ParseGradientRuleError(name.to_owned()))
    }
}

impl Graph {
    /// The same step with gradients that are there for all of it: as many of each size as are there at once. The others
    /// have no bytes.
    ///
    /// # Errors
    /// If the steps do not go together any more, which does not happen.
    pub fn with_preallocated_gradients(&self) -> Result<Self, GraphError> {
        let is_gradient = |id: BlockId| self.block(id).role == BlockRole::Gradient;
        let mut unused: BTreeMap<Bytes, Vec<BlockId>> = BTreeMap::new();
        // The first gradient of each that is in the same place, and the place of each that is there.
        let (mut first, mut place_of) = (Vec::new(), BTreeMap::new());
        for action in self.steps().iter().flat_map(|step| &step.actions) {
            match *action {
                Action::Alloc(id) if is_gradient(id) => {
                    let place = unused.get_mut(&self.block(id).size).and_then(Vec::pop);
                    let place = place.unwrap_or_else(|| {
                        first.push(id);
                        id
                    });
                    place_of.insert(id, place);
                }
                Action::Free(id) if is_gradient(id) => {
                    unused.entry(self.block(id).size).or_default().push(place_of[&id]);
                }
                _ => {}
            }
        }
        first.sort_unstable();
        let is_static = |id: BlockId| first.binary_search(&id).is_ok();
        let graph = self.resized(|id, block| match is_gradient(id) && !is_static(id) {
            true => Bytes::ZERO,
            false => block.size,
        });
        let (layers, mut steps, blocks) = graph.into_parts();
        for step in &mut steps {
            step.actions.retain(|action| {
                let (Action::Alloc(id) | Action::Free(id)) = *action;
                !is_static(id)
            });
        }
        if let Some(step) = steps.first_mut() {
            step.actions.splice(0..0, first.iter().copied().map(Action::Alloc));
        }
        Self::new(layers, steps, blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{GraphStep, StepBlock, StepId, Work};
    use xmem_types::Nanos;

    /// Gradients 0 and 1 of the step before are freed, 2 and 3 of the same sizes are made; 4 is a sum that comes and goes.
    #[test]
    fn gradients_take_the_places_of_those_of_the_step_before() {
        let block = |size| StepBlock {
            size: Bytes(size),
            role: BlockRole::Gradient,
            writers: Vec::new(),
            readers: Vec::new(),
            backward: Vec::new(),
        };
        let blocks = [8, 4, 4, 8, 4].map(block).to_vec();
        let step = |actions: &[Action]| GraphStep {
            work: Work::Other,
            duration: Nanos(1),
            actions: actions.to_vec(),
        };
        let (alloc, free) = (|id| Action::Alloc(BlockId(id)), |id| Action::Free(BlockId(id)));
        let steps = vec![
            step(&[alloc(0), alloc(1)]),
            step(&[free(0), free(1)]),
            step(&[alloc(2), alloc(4), free(4)]),
            step(&[alloc(3)]),
        ];
        let graph = Graph::new(Vec::new(), steps, blocks).expect("a graph");
        let graph = graph.with_preallocated_gradients().expect("a graph");
        let sizes: Vec<u64> = graph.blocks().iter().map(|block| block.size.get()).collect();
        assert_eq!(sizes, [8, 4, 0, 0, 4]);
        let there = [0, 1, 4].map(|id| graph.lifetime(BlockId(id)));
        assert!(there.iter().all(|lifetime| (lifetime.alloc, lifetime.free) == (StepId(0), None)));
    }
}
