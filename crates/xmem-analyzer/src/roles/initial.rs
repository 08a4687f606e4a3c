//! Blocks made before the first iteration: parameters, buffers, optimizer state, data.

use super::facts::Facts;
use super::weights;
use crate::block::{Block, Residency, Role};
use crate::names::NameKind;
use crate::python::Registered;
use crate::spans::Phase;
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_types::{Bytes, IterationId, Nanos};

/// The way in which an operator shows that a block is a parameter.
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
    pub(super) first: Option<usize>,
    pub(super) last: Option<usize>,
    /// Sizes of the parameters with their count; those that something was made alike are taken out.
    pub(super) sizes: FxHashMap<Bytes, u32>,
}

impl ModelRows {
    pub(super) fn of(blocks: &[Block]) -> Self {
        let init = blocks.iter().take_while(|b| b.phase == Phase::Init).enumerate();
        let mut model = Self::default();
        for (row, block) in init.filter(|(_, b)| b.role == Role::Parameter) {
            model.first.get_or_insert(row);
            model.last = Some(row);
            *model.sizes.entry(block.size).or_default() += 1;
        }
        model
    }
}

/// The kind of tensor that a module was given next after `time`.
pub(super) fn registered_after(facts: &Facts<'_>, time: Nanos) -> Option<Registered> {
    let next = facts.registrations.partition_point(|r| r.0 < time);
    facts.registrations.get(next).map(|r| r.1)
}

/// Returns whether the block was made by an operator that copies another tensor's form, as optimizers
/// that make their state at construction do (torch/optim/adagrad.py, `torch.full_like`).
pub(super) fn is_like_a_parameter(block: &Block, facts: &Facts<'_>) -> bool {
    let outermost = facts.program.outermost_op(block);
    outermost.is_some_and(|op| facts.program.op_name(op).ends_with("_like"))
}

/// The blocks that operators show to be parameters: one sweep over the operators of the init phase.
pub(super) fn claims(blocks: &[Block], facts: &Facts<'_>) -> FxHashMap<usize, (Claim, Nanos)> {
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

/// The use of data that was made before training.
#[derive(Clone, Debug, Default)]
pub(super) struct DataUses {
    /// True if the loop makes batches of its own.
    pub(super) loop_makes_batches: bool,
    /// Sizes of the tensors that the first forward takes; none where shapes were not recorded.
    pub(super) forward_takes: Option<FxHashSet<Bytes>>,
}

impl DataUses {
    pub(super) fn find(blocks: &[Block], facts: &Facts<'_>) -> Self {
        let program = facts.program;
        let with_batch: FxHashSet<IterationId> = blocks
            .iter()
            .filter(|b| b.phase == Phase::Data && b.residency == Residency::Batch)
            .filter_map(|b| b.iteration)
            .collect();
        let forward_takes = facts.program.has_shapes().then(|| {
            weights::first_forward(facts)
                .iter()
                .flat_map(|&op| program.arguments(op).tensors().map(|t| program.block_bytes(t)))
                .collect()
        });
        Self { loop_makes_batches: with_batch.len() * 2 > facts.iterations.len(), forward_takes }
    }
}
