//! Blocks made before the first iteration: parameters, buffers, optimizer state, data.

use super::case::{Case, Clues};
use super::{Facts, FrozenWeights, Inventory, weights};
use crate::block::{Block, Phase, Residency, Role};
use crate::names::NameKind;
use crate::python::Registered;
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_types::{Bytes, IterationId, Nanos};

/// How an operator shows that a block is a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Wrapped by `nn.Parameter` or `nn.Buffer`, which detach the tensor they are given.
    Wrapped,
    /// Given to a parameter as its data: by `Module._apply`, which converts it, or by `.data =`
    /// (torch/csrc/autograd/variable.cpp, `VariableHooks::set_data`).
    Assigned,
}

/// Rows of the blocks of the model's parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelRows {
    first: Option<usize>,
    last: Option<usize>,
    /// Sizes of the parameters with their count; those that something was made alike are taken out.
    sizes: FxHashMap<Bytes, u32>,
}

/// Finds what shows that blocks of the init phase are parameters.
pub(super) fn prepare_parameters(clues: &mut Clues, blocks: &[Block], facts: &Facts<'_>) {
    clues.inventory = Inventory::build(&clues.gradients, facts);
    clues.unmatched = clues.inventory.clone();
    clues.claims = claims(blocks, facts);
    clues.frozen = FrozenWeights::of_first_forward(facts);
}

/// Finds what decides about the other blocks of the init phase.
pub(super) fn prepare_rest(clues: &mut Clues, blocks: &[Block], facts: &Facts<'_>) {
    let init = blocks.iter().take_while(|b| b.phase == Phase::Init).enumerate();
    let mut model = ModelRows::default();
    for (row, block) in init.filter(|(_, b)| b.role == Role::Parameter) {
        model.first.get_or_insert(row);
        model.last = Some(row);
        *model.sizes.entry(block.size).or_default() += 1;
    }
    clues.model = model;
    clues.statistics = weights::statistics_of_first_forward(facts);
    clues.data_uses = DataUses::find(blocks, facts);
}

impl Case<'_> {
    /// How an operator shows that the block is a parameter. Only of blocks that are kept, and not of
    /// those that are registered as buffers next.
    pub(super) fn claim(&self) -> Option<Claim> {
        let &(claim, at) = self.clues.claims.get(&self.row).filter(|_| self.is_kept())?;
        let is_buffer =
            claim == Claim::Wrapped && registered_after(self.facts, at) == Some(Registered::Buffer);
        (!is_buffer).then_some(claim)
    }

    /// Whether a module is given something after the block was wrapped.
    pub(super) fn is_registered(&self) -> bool {
        let claim = self.clues.claims.get(&self.row);
        claim.is_some_and(|&(_, at)| registered_after(self.facts, at).is_some())
    }

    /// Takes a weight of the block's size out of those that forward takes and that get no gradient.
    pub(super) fn takes_frozen_weight(&mut self) -> bool {
        self.clues.frozen.take(self.block().size)
    }

    pub(super) fn is_freed_before_first_forward(&self) -> bool {
        !self.block().lasts_beyond(self.clues.first_forward)
    }

    /// Whether the block is a copy of another tensor, as `copy.deepcopy` of a module makes them for an
    /// average of the weights (torch/nn/parameter.py, `Parameter.__deepcopy__`).
    pub(super) fn is_copy(&self) -> bool {
        let program = self.facts.program;
        program.outermost_op(self.block()).is_some_and(|op| program.op_name(op) == "aten::clone")
    }

    /// Takes a size out of the parameters': each is copied once.
    pub(super) fn takes_parameter_size(&mut self) -> bool {
        match self.clues.model.sizes.get_mut(&self.blocks[self.row].size) {
            Some(n @ 1..) => {
                *n -= 1;
                true
            }
            _ => false,
        }
    }

    /// Whether the block was made after the first and before the last parameter.
    pub(super) fn is_among_parameters(&self) -> bool {
        let ModelRows { first, last, .. } = self.clues.model;
        first.is_some_and(|first| first < self.row) && last.is_some_and(|last| self.row < last)
    }

    /// Whether the block has the form of another tensor.
    pub(super) fn is_like_a_parameter(&self) -> bool {
        is_like_a_parameter(self.block(), self.facts)
    }

    /// Whether the next block has the form of another tensor.
    pub(super) fn is_next_like_a_parameter(&self) -> bool {
        let next = self.blocks.get(self.row + 1).filter(|b| b.phase == Phase::Init);
        next.is_some_and(|b| is_like_a_parameter(b, self.facts))
    }

    /// Whether the block was made after the parameters and has the size of running statistics.
    pub(super) fn is_statistic(&self) -> bool {
        self.clues.statistics.contains_key(&self.block().size)
            && self.clues.model.last.is_some_and(|last| self.row > last)
    }

    /// Whether the first forward takes a tensor of the block's size; none where shapes were not
    /// recorded.
    pub(super) fn does_forward_take(&self) -> Option<bool> {
        let sizes = self.clues.data_uses.forward_takes.as_ref()?;
        Some(sizes.contains(&self.block().size))
    }
}

/// What a module was given next after `time`.
fn registered_after(facts: &Facts<'_>, time: Nanos) -> Option<Registered> {
    let next = facts.registrations.partition_point(|r| r.0 < time);
    facts.registrations.get(next).map(|r| r.1)
}

/// Whether the block was made by an operator that copies another tensor's form, as optimizers that
/// make their state at construction do (torch/optim/adagrad.py, `torch.full_like`).
fn is_like_a_parameter(block: &Block, facts: &Facts<'_>) -> bool {
    let outermost = facts.program.outermost_op(block);
    outermost.is_some_and(|op| facts.program.op_name(op).ends_with("_like"))
}

/// Which blocks operators show to be parameters: one sweep over the operators of the init phase.
fn claims(blocks: &[Block], facts: &Facts<'_>) -> FxHashMap<usize, (Claim, Nanos)> {
    let program = facts.program;
    let mut claims = FxHashMap::default();
    let mut by_size: FxHashMap<Bytes, Vec<usize>> = FxHashMap::default();
    let mut recent: Vec<usize> = Vec::new();
    let mut next = 0;
    let init_end = facts.iterations.first().map_or(Nanos::MAX, |i| i.start);
    let mut previous = Nanos::MIN;
    // Where times are whole microseconds, an allocation may seem to come before the operator that
    // made it.
    let whole = blocks.iter().all(|b| b.alloc_time.get() % 1000 == 0);
    let slack = if whole { Nanos(1000) } else { Nanos::ZERO };
    for &op in &facts.timeline.outer {
        let start = program.op_start(op);
        if start >= init_end {
            break;
        }
        while blocks.get(next).is_some_and(|b| b.alloc_time <= start) {
            by_size.entry(blocks[next].size).or_default().push(next);
            recent.push(next);
            next += 1;
        }
        let kind = program.kind(op);
        let (claim, position) = match kind {
            NameKind::Detach => (Claim::Wrapped, 0),
            NameKind::ShallowCopy => (Claim::Assigned, 1),
            _ => {
                previous = start;
                continue;
            }
        };
        let candidates = match facts.program.tensor_bytes(op, position) {
            Some(size) => by_size.entry(size).or_default(),
            None if facts.program.has_shapes() => continue,
            None => &mut recent,
        };
        while candidates.last().is_some_and(|&i| !blocks[i].lasts_beyond(start)) {
            candidates.pop();
        }
        if let Some(&i) = candidates.last() {
            // `_apply` asks about parameters that it did not convert, too.
            let fresh = claim == Claim::Wrapped || blocks[i].alloc_time >= previous - slack;
            if fresh && !claims.contains_key(&i) {
                claims.insert(i, (claim, start));
                candidates.pop();
            }
        }
    }
    claims
}

/// What training does with data that was made before it.
#[derive(Clone, Debug, Default)]
pub(super) struct DataUses {
    /// Whether the loop makes batches of its own.
    pub(super) loop_makes_batches: bool,
    /// Sizes of the tensors that the first forward takes; none where shapes were not recorded.
    forward_takes: Option<FxHashSet<Bytes>>,
}

impl DataUses {
    fn find(blocks: &[Block], facts: &Facts<'_>) -> Self {
        let program = facts.program;
        let with_batch: FxHashSet<IterationId> = blocks
            .iter()
            .filter(|b| b.phase == Phase::Data && b.residency == Residency::Batch)
            .filter_map(|b| b.iteration)
            .collect();
        let forward_takes = facts.program.has_shapes().then(|| {
            weights::first_forward(facts)
                .iter()
                .flat_map(|&op| program.arguments(op).tensors().map(|t| Bytes(t.bytes())))
                .collect()
        });
        Self { loop_makes_batches: with_batch.len() * 2 > facts.iterations.len(), forward_takes }
    }
}
