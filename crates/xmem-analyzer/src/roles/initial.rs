//! Blocks made before the first iteration: parameters, buffers, optimizer state, data.

use super::{Facts, FrozenWeights, Inventory, weights};
use crate::block::{Block, Phase, Residency, Role};
use crate::names::NameKind;
use crate::python::{Context, Registered};
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_types::{Bytes, IterationId, Nanos, OpId};

/// How an operator shows that a block is a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// Wrapped by `nn.Parameter` or `nn.Buffer`, which detach the tensor they are given.
    Wrapped,
    /// Given to a parameter as its data: by `Module._apply`, which converts it, or by `.data =`
    /// (torch/csrc/autograd/variable.cpp, `VariableHooks::set_data`).
    Assigned,
}

/// Decides the blocks of the init phase.
pub(super) fn assign(
    blocks: &mut [Block],
    facts: &Facts<'_>,
    numbers: &FxHashSet<OpId>,
    unmatched: &mut Inventory,
) {
    let claims = claims(blocks, facts);
    let last_use = facts.last_use();
    let first_forward = facts.first_forward();
    let init: Vec<usize> =
        (0..blocks.len()).take_while(|&i| blocks[i].phase == Phase::Init).collect();
    let mut open: Vec<usize> = Vec::new();
    let mut frozen = FrozenWeights::of_first_forward(facts);
    // Parameters first: what is left of the inventory decides about the rest.
    for &i in &init {
        let block = &mut blocks[i];
        if !block.lasts_beyond(last_use) {
            open.push(i);
            continue;
        }
        let Some(&(claim, at)) = claims.get(&i) else {
            open.push(i);
            continue;
        };
        if claim == Claim::Wrapped && registered(facts, at) == Some(Registered::Buffer) {
            open.push(i);
            continue;
        }
        let trained = unmatched.take(block.size);
        let evidence = match (claim, trained) {
            (Claim::Wrapped, true) => {
                "wrapped as nn.Parameter, never freed, and a gradient of its size is accumulated"
            }
            (Claim::Assigned, true) => {
                "became a parameter's data, never freed, and a gradient of its size is accumulated"
            }
            (Claim::Wrapped, false) if registered(facts, at).is_some() => {
                "registered as a module's parameter; no gradient is accumulated (frozen)"
            }
            (Claim::Wrapped, false) if !facts.program.has_python() && frozen.take(block.size) => {
                "wrapped as nn.Parameter and taken as a weight; no gradient (frozen)"
            }
            // A buffer of another kind, or a data set that was detached.
            (Claim::Wrapped, false) => {
                open.push(i);
                continue;
            }
            (Claim::Assigned, false) => {
                "became a parameter's data; no gradient is accumulated (frozen)"
            }
        };
        block.decide(Role::Parameter, Residency::Model, evidence);
    }
    let parameters =
        || init.iter().map(|&i| (i, &blocks[i])).filter(|(_, b)| b.role == Role::Parameter);
    let model = parameters().next().map(|(i, _)| i)..parameters().next_back().map(|(i, _)| i);
    let mut sizes: FxHashMap<Bytes, u32> = FxHashMap::default();
    for (_, b) in parameters() {
        *sizes.entry(b.size).or_default() += 1;
    }
    let statistics = weights::statistics_of_first_forward(facts);
    let uses = DataUses::find(blocks, facts);
    for i in open {
        let block = &blocks[i];
        let from_number = block.op.is_some_and(|op| numbers.contains(&op));
        let context = facts.frames[i].context;
        let (role, residency, evidence) = if !block.lasts_beyond(first_forward) {
            (Role::Temporary, Residency::HostOnly, "freed before the first forward")
        } else if !block.lasts_beyond(last_use) {
            uses.of(block)
        } else if context == Context::OptimizerInit && from_number {
            let text = "a counter: made from a Python number by the optimizer's constructor";
            (Role::OptimizerState, Residency::HostOnly, text)
        } else if context == Context::OptimizerInit {
            let text = "made by the optimizer's constructor and never freed";
            (Role::OptimizerState, Residency::Device, text)
        } else if unmatched.take(block.size) {
            let text = "made before the first iteration, never freed, and a gradient of its size is accumulated";
            (Role::Parameter, Residency::Model, text)
        } else if context == Context::ModuleInit {
            (Role::Buffer, Residency::Model, "made by a module's constructor; no parameter")
        } else if context == Context::ModuleApply {
            (Role::Buffer, Residency::Model, "converted by Module._apply; no parameter")
        } else if is_copy(block, facts) && take(&mut sizes, block.size) {
            let text =
                "copied from a tensor of a parameter's size before training, and never freed";
            (Role::Buffer, Residency::Device, text)
        } else if facts.program.has_python() {
            uses.of(block)
        } else if model.start.is_some_and(|s| s < i) && model.end.is_some_and(|e| i < e) {
            (Role::Buffer, Residency::Model, "made among the model's parameters; no parameter")
        } else if is_like_a_parameter(block, facts) && take(&mut sizes, block.size) {
            let text = "made like a parameter after the model, before training, and never freed";
            (Role::OptimizerState, Residency::Device, text)
        } else if statistics.contains_key(&block.size)
            && model.end.is_some_and(|e| i > e)
            && !from_number
        {
            let text =
                "made with the model's parameters; a normalisation takes statistics of its size";
            (Role::Buffer, Residency::Model, text)
        } else if from_number
            && blocks
                .get(i + 1)
                .is_some_and(|b| b.phase == Phase::Init && is_like_a_parameter(b, facts))
        {
            let text = "a counter: made from a Python number, next to state made like a parameter";
            (Role::OptimizerState, Residency::HostOnly, text)
        } else {
            uses.of(block)
        };
        blocks[i].decide(role, residency, evidence);
    }
}

/// What a module was given next after `time`.
fn registered(facts: &Facts<'_>, time: Nanos) -> Option<Registered> {
    let next = facts.registrations.partition_point(|r| r.0 < time);
    facts.registrations.get(next).map(|r| r.1)
}

fn take(sizes: &mut FxHashMap<Bytes, u32>, size: Bytes) -> bool {
    match sizes.get_mut(&size) {
        Some(n @ 1..) => {
            *n -= 1;
            true
        }
        _ => false,
    }
}

/// Whether the block was made by an operator that copies another tensor's form, as optimizers that
/// make their state at construction do (torch/optim/adagrad.py, `torch.full_like`).
fn is_like_a_parameter(block: &Block, facts: &Facts<'_>) -> bool {
    let outermost = facts.program.outermost_op(block);
    outermost.is_some_and(|op| facts.program.op_name(op).ends_with("_like"))
}

/// Whether the block is a copy of another tensor, as `copy.deepcopy` of a module makes them for an
/// average of the weights (torch/nn/parameter.py, `Parameter.__deepcopy__`).
fn is_copy(block: &Block, facts: &Facts<'_>) -> bool {
    facts.program.outermost_op(block).is_some_and(|op| facts.program.op_name(op) == "aten::clone")
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

/// What becomes of data that was made before training.
struct DataUses {
    /// Whether the loop makes batches of its own.
    loop_makes_batches: bool,
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

    /// A tensor that was made before training, outside of the model, and that training may use.
    fn of(&self, block: &Block) -> (Role, Residency, &'static str) {
        if self.loop_makes_batches {
            let text = "made before training, outside of the model; the loop makes its own batches";
            return (Role::Input, Residency::HostOnly, text);
        }
        match &self.forward_takes {
            Some(sizes) if !sizes.contains(&block.size) => {
                let text = "made before training, outside of the model; forward takes no tensor of its size";
                (Role::Input, Residency::HostOnly, text)
            }
            Some(_) => {
                let text = "made before training, outside of the model; forward takes a tensor of its size";
                (Role::Input, Residency::Batch, text)
            }
            None => {
                let text = "made before training, outside of the model; the loop makes no batches";
                (Role::Input, Residency::Batch, text)
            }
        }
    }
}
