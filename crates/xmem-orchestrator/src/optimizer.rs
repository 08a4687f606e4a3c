//! The optimizer's step: whole parameter lists at once.
//!
//! On CUDA, `torch.optim` runs over lists of tensors (foreach) where the CPU goes parameter by
//! parameter (torch/optim/optimizer.py, `_default_to_fused_or_foreach`). Each temporary that the
//! CPU's loop makes for one parameter at a time then exists for all parameters together. The state
//! itself, and the order in which it is made, are the same.

mod evidence;
mod foreach;
mod recipe;
mod requested;
mod updates;

use crate::draft::{Addition, Draft};
use crate::rules::name;
use crate::scratch::SCALAR;
use crate::target::{OptimizerImpl, Target};
use evidence::Evidence;
use recipe::{Fused, Recipe, Scalars};
use requested::{Requested, ScalarPlace};
use updates::{Groups, Update};
use xmem_analyzer::{Profile, Residency, Role};
use xmem_types::OpId;

const PREFIX: &str = "Optimizer.step#";

/// Whether an annotation is an optimizer's step.
pub(crate) fn is_step(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Whether there is a rule for an optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Yes,
    No,
}

/// What is known of the optimizers of a trace, from step to step.
pub(crate) struct Optimizers {
    evidence: Evidence,
    groups: Groups,
    requested: Requested,
}

impl Optimizers {
    pub(crate) fn of(profile: &Profile) -> Self {
        Self {
            evidence: Evidence::of(profile),
            groups: Groups::default(),
            requested: Requested::default(),
        }
    }
}

/// A step's window. State (what outlives the step) stays; the loop's temporaries give way to the
/// foreach lists. An optimizer without a recipe is kept as recorded, less the numbers that Python
/// wraps as tensors.
pub(crate) fn step(
    draft: &mut Draft<'_>,
    target: &Target,
    optimizers: &mut Optimizers,
    mark: OpId,
) -> Known {
    let own = updates::own_operators(draft.profile, mark);
    drop_numbers(draft, mark);
    let name = draft.profile.op_name(mark);
    let class = name.strip_prefix(PREFIX).and_then(|n| n.strip_suffix(".step")).unwrap_or(name);
    let iteration = draft.profile.phase_at(draft.profile.op_start(mark)).and_then(|s| s.iteration);
    let request = optimizers.requested.of_step(draft.profile, class, iteration);
    let run = target.optimizer.or(request.run).unwrap_or_default();
    if recipe::LOOPS.contains(&class) || runs_on_lists(draft, &own) {
        return Known::Yes;
    }
    let Some(recipe) = optimizers.evidence.recipe(draft, class, mark, &own) else {
        return Known::No;
    };
    let updates = updates::updates(draft, recipe, mark, &own);
    let Some(first) = updates.first() else {
        // A class of the same name that does something else, or a step without gradients.
        return if own.is_empty() { Known::Yes } else { Known::No };
    };
    put_scalars(draft, recipe, (run, request.scalars), mark);
    if run == OptimizerImpl::ForLoop {
        return Known::Yes;
    }
    drop_temporaries(draft, mark, first);
    for group in optimizers.groups.split(draft, recipe, mark, &updates) {
        match (run, recipe.fused) {
            (OptimizerImpl::Fused, Fused::Supported) => {}
            _ => foreach::run(draft, recipe, &updates[group], mark),
        }
    }
    Known::Yes
}

/// Whether the recording was made with `foreach=True` or `fused=True`: then it is right as it is.
fn runs_on_lists(draft: &Draft<'_>, own: &[OpId]) -> bool {
    own.iter().any(|&op| {
        let name = draft.profile.op_name(op);
        name.starts_with("aten::_foreach_") || name.starts_with("aten::_fused_")
    })
}

/// Leaves out what the loop makes and gives back.
fn drop_temporaries(draft: &mut Draft<'_>, mark: OpId, first: &Update) {
    let (from, to) = (draft.profile.op_start(first.ops[0]), draft.profile.op_end(mark));
    let thread = draft.profile.op_thread(mark);
    for i in draft.profile.blocks_between(from, to) {
        let ours = draft.profile.blocks[i].thread == thread && !draft.escapes(i, mark);
        if ours && !is_copied_to_state(draft, mark, i) {
            draft.drop_block(i, name::OPTIMIZER);
        }
    }
}

/// Numbers that Python turns into tensors (`step_t += 1`, `torch.as_tensor(1.0)`) stay on the host.
fn drop_numbers(draft: &mut Draft<'_>, mark: OpId) {
    let profile = draft.profile;
    for i in draft.blocks_in(mark) {
        let block = &profile.blocks[i];
        let wrapped = block.op.is_some_and(|op| {
            let made =
                profile.op_name(op) == "aten::empty" && profile.tree.parent(op) == Some(mark);
            op == mark || made
        });
        let number = wrapped && block.size.get() <= SCALAR && !draft.escapes(i, mark);
        if number && !is_copied_to_state(draft, mark, i) {
            draft.drop_block(i, name::OPTIMIZER);
        }
    }
}

/// Whether a number is made on the parameter's device to be cloned (torch/optim/asgd.py,
/// `_init_group`: `eta`).
fn is_copied_to_state(draft: &Draft<'_>, mark: OpId, block: usize) -> bool {
    let small = |i: usize| draft.profile.blocks[i].size.get() <= SCALAR;
    let next = block + 1;
    next < draft.profile.blocks.len()
        && small(block)
        && small(next)
        && draft.escapes(next, mark)
        && updates::made_in_loop(draft.profile, next)
}

/// Step counters and the like, where the GPU has them: 0-dimensional fp32 tensors
/// (torch/optim/optimizer.py, `_get_scalar_dtype`).
fn put_scalars(
    draft: &mut Draft<'_>,
    recipe: &Recipe,
    (run, place): (OptimizerImpl, ScalarPlace),
    mark: OpId,
) {
    let on_device = match recipe.scalars {
        Scalars::Host => false,
        Scalars::HostUnlessFused => run == OptimizerImpl::Fused || place == ScalarPlace::Device,
        Scalars::Device => true,
    };
    if !on_device {
        return;
    }
    for i in draft.blocks_in(mark) {
        let block = &draft.profile.blocks[i];
        let scalar = block.role == Role::OptimizerState && block.residency == Residency::HostOnly;
        if let Some(op) = block.op.filter(|_| scalar && draft.escapes(i, mark)) {
            let (alloc, free) = (draft.items[i].alloc, draft.items[i].free);
            let new = Addition { size: block.size, alloc, free, role: Role::OptimizerState, op };
            draft.add(new, name::OPTIMIZER);
        }
    }
}
