//! The optimizer's step: whole parameter lists at once.

use crate::draft::{Addition, Draft, Position};
use crate::rules::name;
use crate::target::{OptimizerImpl, Target};
use xmem_analyzer::Role;
use xmem_types::{Bytes, Nanos, OpId};

/// How an optimizer's foreach implementation differs from its loop.
struct Foreach {
    /// The class name in `Optimizer.step#NAME.step`.
    class: &'static str,
    /// The operator of the CPU loop that makes one temporary per parameter, in parameter order.
    per_parameter: &'static str,
    /// How many whole lists of temporaries are alive at once.
    lists: usize,
}

/// Temporaries of `_multi_tensor_*` in torch/optim/<name>.py, without weight decay or maximize.
/// Recorded with PyTorch 2.11's CUDA build, kernels stubbed.
const FOREACH: &[Foreach] = &[
    Foreach { class: "Adam", per_parameter: "aten::sqrt", lists: 1 },
    Foreach { class: "AdamW", per_parameter: "aten::sqrt", lists: 1 },
    Foreach { class: "NAdam", per_parameter: "aten::sqrt", lists: 1 },
    Foreach { class: "RAdam", per_parameter: "aten::sqrt", lists: 1 },
    Foreach { class: "RMSprop", per_parameter: "aten::sqrt", lists: 1 },
    Foreach { class: "Adagrad", per_parameter: "aten::sqrt", lists: 2 },
    Foreach { class: "SGD", per_parameter: "", lists: 0 },
];

const PREFIX: &str = "Optimizer.step#";

/// A step's window. State (what outlives the step) stays; the loop's temporaries give way to the
/// foreach lists, which are alive together until the step ends.
pub(crate) fn step(draft: &mut Draft<'_>, target: &Target, mark: OpId) {
    if target.optimizer == OptimizerImpl::ForLoop {
        return;
    }
    let name = draft.profile.op_name(mark);
    let class = name.strip_prefix(PREFIX).and_then(|n| n.strip_suffix(".step"));
    let Some(foreach) = FOREACH.iter().find(|f| Some(f.class) == class) else { return };
    let temporaries: Vec<usize> =
        draft.blocks_in(mark).into_iter().filter(|&i| !draft.escapes(i, mark)).collect();
    let end = draft.profile.op_end(mark) - Nanos(1);
    let mut list: Vec<(Bytes, OpId, Nanos)> = Vec::new();
    for i in temporaries {
        let block = &draft.profile.blocks[i];
        if let Some(op) = block.op.filter(|&op| draft.profile.op_name(op) == foreach.per_parameter)
        {
            list.push((block.size, op, block.alloc_time));
        }
        draft.drop_block(i, name::OPTIMIZER);
    }
    if target.optimizer == OptimizerImpl::Fused {
        return;
    }
    let Some(&(_, _, first)) = list.first() else { return };
    for _ in 0..foreach.lists {
        for &(size, op, _) in &list {
            let alloc = draft.after_position(Position::start(first));
            let free = draft.after_position(Position::end(end));
            draft.add(
                Addition { size, alloc, free: Some(free), role: Role::Temporary, op },
                name::OPTIMIZER,
            );
        }
    }
}

/// Whether an annotation is an optimizer's step.
pub(crate) fn is_step(name: &str) -> bool {
    name.starts_with(PREFIX)
}
