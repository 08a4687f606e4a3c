//! The optimizer's step: whole parameter lists at once.
//!
//! On CUDA, `torch.optim` runs over lists of tensors (foreach) where the CPU goes parameter by
//! parameter. Each temporary that the CPU's loop makes for one parameter at a time then exists for
//! all parameters together. The state itself, and the order in which it is made, are the same.

use crate::draft::{Addition, Draft, Position};
use crate::rules::name;
use crate::scratch::SCALAR;
use crate::target::{OptimizerImpl, Target};
use rustc_hash::{FxHashMap, FxHashSet};
use xmem_analyzer::{Profile, Role};
use xmem_types::{Bytes, Nanos, OpId};

/// How an optimizer's foreach implementation differs from its loop.
struct Foreach {
    /// The class name in `Optimizer.step#NAME.step`.
    class: &'static str,
    /// Stages of the step: within a stage everything is alive together, each stage releases its
    /// lists before the next.
    stages: &'static [Stage],
}

/// The lists that are alive together: each is made of the outputs of one operator of the CPU's
/// loop, and counts this many times.
type Stage = &'static [(&'static str, usize)];

/// A copy of the gradients: made by L2 weight decay (`grad.add(param, alpha=weight_decay)`) or by
/// `maximize` (`-grad`), if the loop does so.
const DECAY: (&str, usize) = ("aten::add", 1);
const NEGATED: (&str, usize) = ("aten::neg", 1);

/// Temporaries of `_multi_tensor_*` in torch/optim/<name>.py. The lists of the plain optimizers
/// were recorded with PyTorch 2.11's CUDA build, kernels stubbed; the weight-decay copies are
/// read from the source.
const FOREACH: &[Foreach] = &[
    Foreach { class: "SGD", stages: &[&[DECAY, NEGATED]] },
    Foreach { class: "Adam", stages: &[&[DECAY, NEGATED], &[("aten::sqrt", 1)]] },
    Foreach { class: "AdamW", stages: &[&[NEGATED], &[("aten::sqrt", 1)]] },
    Foreach { class: "NAdam", stages: &[&[DECAY, NEGATED, ("aten::sqrt", 1)]] },
    Foreach { class: "RAdam", stages: &[&[DECAY, NEGATED, ("aten::sqrt", 1)]] },
    Foreach { class: "Adamax", stages: &[&[DECAY, NEGATED, ("aten::abs", 1)]] },
    Foreach { class: "RMSprop", stages: &[&[DECAY, NEGATED, ("aten::sqrt", 1)]] },
    // std and numerator; the numerator reuses a copy of the gradients where there is one.
    Foreach { class: "Adagrad", stages: &[&[("aten::sqrt", 2)]] },
    // std and deltas are both `x.add(eps)`, and so is weight decay.
    Foreach { class: "Adadelta", stages: &[&[DECAY, NEGATED]] },
    Foreach { class: "ASGD", stages: &[&[DECAY, NEGATED, ("aten::sub", 1)]] },
    Foreach { class: "Rprop", stages: &[&[("aten::mul", 1)]] },
];

const PREFIX: &str = "Optimizer.step#";

/// A step's window. State (what outlives the step) stays; the loop's temporaries give way to the
/// foreach lists. An optimizer that the table does not have is kept as recorded.
pub(crate) fn step(draft: &mut Draft<'_>, target: &Target, mark: OpId) -> Known {
    let name = draft.profile.op_name(mark);
    let class = name.strip_prefix(PREFIX).and_then(|n| n.strip_suffix(".step"));
    let Some(foreach) = FOREACH.iter().find(|f| Some(f.class) == class) else {
        return Known::No;
    };
    if target.optimizer == OptimizerImpl::ForLoop {
        return Known::Yes;
    }
    let in_place = match foreach.class {
        "SGD" => nesterov_sums(draft.profile, mark),
        _ => FxHashSet::default(),
    };
    let mut lists: FxHashMap<&'static str, Vec<Entry>> = FxHashMap::default();
    for i in draft.blocks_in(mark) {
        if draft.escapes(i, mark) {
            continue;
        }
        let block = &draft.profile.blocks[i];
        if let Some(op) = block.op.filter(|op| block.size.get() > SCALAR && !in_place.contains(op))
        {
            let made_by = draft.profile.op_name(op);
            let wanted = foreach.stages.iter().copied().flatten().find(|(o, _)| *o == made_by);
            if let Some(&(operator, _)) = wanted {
                let entry = Entry { size: block.size, op, time: block.alloc_time };
                lists.entry(operator).or_default().push(entry);
            }
        }
        draft.drop_block(i, name::OPTIMIZER);
    }
    if foreach.class == "RAdam" && !lists.contains_key("aten::sqrt") {
        lists.insert("aten::sqrt", second_moments(draft.profile, mark));
    }
    if target.optimizer == OptimizerImpl::Foreach {
        place(draft, foreach, &lists, mark);
    }
    Known::Yes
}

/// One entry per second moment that a step updates. RAdam's loop takes their roots only once the
/// variance is rectified (torch/optim/radam.py: after five steps), foreach always does.
fn second_moments(profile: &Profile, mark: OpId) -> Vec<Entry> {
    let updates = profile.tree.children(mark).filter(|&op| profile.op_name(op) == "aten::addcmul_");
    updates
        .filter_map(|op| {
            let size = Bytes(profile.arguments(op).tensor(0)?.bytes());
            Some(Entry { size, op, time: profile.op_start(op) })
        })
        .collect()
}

/// The sums `grad + momentum * buffer` of Nesterov's step (torch/optim/sgd.py): the loop makes a new
/// tensor, foreach adds into the gradients. They come after the momentum buffer was made (`clone`)
/// or updated (`mul_`, `add_`) and before the parameter's own update (`add_`); the sum of weight
/// decay comes before both.
fn nesterov_sums(profile: &Profile, mark: OpId) -> FxHashSet<OpId> {
    let mut sums = FxHashSet::default();
    let (mut has_buffer, mut updates_buffer) = (false, false);
    for op in profile.tree.children(mark) {
        match profile.op_name(op) {
            "aten::clone" => has_buffer = true,
            "aten::mul_" => (has_buffer, updates_buffer) = (true, true),
            "aten::add" if has_buffer => {
                sums.insert(op);
            }
            "aten::add_" if updates_buffer => updates_buffer = false,
            "aten::add_" => has_buffer = false,
            _ => {}
        }
    }
    sums
}

/// Whether the table has an optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Yes,
    No,
}

/// One temporary of the loop.
struct Entry {
    size: Bytes,
    op: OpId,
    time: Nanos,
}

fn place(
    draft: &mut Draft<'_>,
    foreach: &Foreach,
    lists: &FxHashMap<&'static str, Vec<Entry>>,
    mark: OpId,
) {
    let Some(first) = lists.values().flatten().map(|e| e.time).min() else { return };
    let end = Position::end(draft.profile.op_end(mark) - Nanos(1));
    for (n, stage) in foreach.stages.iter().enumerate() {
        let last = n + 1 == foreach.stages.len();
        let mut additions = Vec::new();
        for (operator, times) in stage.iter() {
            let Some(list) = lists.get(operator) else { continue };
            for entry in std::iter::repeat_n(list, *times).flatten() {
                let alloc = draft.after_position(Position::start(first));
                let role = Role::Temporary;
                additions.push(Addition {
                    size: entry.size,
                    alloc,
                    free: None,
                    role,
                    op: entry.op,
                });
            }
        }
        for mut addition in additions {
            let at = if last { end } else { Position::start(first) };
            addition.free = Some(draft.after_position(at));
            draft.add(addition, name::OPTIMIZER);
        }
    }
}

/// Whether an annotation is an optimizer's step.
pub(crate) fn is_step(name: &str) -> bool {
    name.starts_with(PREFIX)
}
