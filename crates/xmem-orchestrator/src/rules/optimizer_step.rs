//! The optimizer's step runs over whole parameter lists (foreach) where the CPU goes parameter by parameter.
//!
//! Each temporary that the CPU's loop makes for one parameter at a time then exists for all parameters
//! together. The state itself, and the order in which it is made, are the same. A step of an optimizer
//! without a recipe is kept as recorded, less the numbers that Python wraps as tensors.

mod evidence;
mod foreach;
mod recipe;
mod requested;
#[cfg(test)]
pub(super) mod tests;
mod updates;

use super::host_scalars::SCALAR;
use crate::frame::call::Call;
use crate::frame::context::Context;
use crate::frame::definition::{Applies, Lowering, Outcome, Reason, RuleDefinition};
use crate::frame::draft::{Addition, Draft, Edits};
use crate::rule::Rule;
use crate::target::{OptimizerImpl, Target};
use evidence::Evidence;
use recipe::{Fused, Recipe, Scalars};
use requested::{Requested, ScalarPlace};
use updates::{Groups, Update};
use xmem_analyzer::{Residency, Role};
use xmem_types::{BlockId, OpId};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "optimizer-step",
        summary: "the optimizer runs over whole parameter lists (foreach) instead of parameter by parameter",
        source: "torch/optim/optimizer.py `_default_to_fused_or_foreach`; torch/optim/*.py `_multi_tensor_*`",
        operators: &[],
        covers: &[
            "aten::_fused_adagrad_",
            "aten::_fused_adam_",
            "aten::_fused_adamw_",
            "aten::_fused_sgd_",
        ],
    },
    applies: Applies::ToAnnotations(PREFIX, |cx| Box::new(Optimizers::new(cx))),
};

const PREFIX: &str = "Optimizer.step#";

/// The optimizers of a trace, from step to step.
struct Optimizers {
    evidence: Evidence,
    groups: Groups,
    requested: Requested,
}

/// The knowledge of an optimizer: there is a recipe for it, or there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Yes,
    No,
}

impl Optimizers {
    fn new(cx: &Context<'_>) -> Self {
        Self {
            evidence: Evidence::of(cx.profile),
            groups: Groups::default(),
            requested: Requested::default(),
        }
    }

    /// A step's window. State (what outlives the step) stays; the loop's temporaries give way to the
    /// foreach lists.
    fn step(&mut self, edits: &mut Edits<'_, '_>, target: &Target, mark: OpId) -> Known {
        let profile = edits.profile();
        let own = updates::own_operators(profile, mark);
        if is_on_host(edits, mark) {
            return Known::Yes;
        }
        drop_numbers(edits, mark);
        let name = profile.op_name(mark);
        let class = name.strip_prefix(PREFIX).and_then(|n| n.strip_suffix(".step")).unwrap_or(name);
        let iteration = profile.phase_at(profile.op_start(mark)).and_then(|s| s.iteration);
        let request = self.requested.of_step(profile, class, iteration);
        let run = target.optimizer.or(request.run).unwrap_or_default();
        if recipe::LOOPS.contains(&class) || runs_on_lists(edits, &own) {
            return Known::Yes;
        }
        let Some(recipe) = self.evidence.recipe(edits, class, mark, &own) else {
            return Known::No;
        };
        let updates = updates::updates(edits, recipe, mark, &own);
        let Some(first) = updates.first() else {
            // A class of the same name that does something else, or a step without gradients.
            return if own.is_empty() { Known::Yes } else { Known::No };
        };
        put_scalars(edits, recipe, (run, request.scalars), mark);
        if run == OptimizerImpl::ForLoop {
            return Known::Yes;
        }
        drop_temporaries(edits, mark, first);
        for group in self.groups.split(edits, recipe, mark, &updates) {
            match (run, recipe.fused) {
                (OptimizerImpl::Fused, Fused::Supported) => {}
                _ => foreach::run(edits, recipe, &updates[group], mark),
            }
        }
        Known::Yes
    }
}

impl Lowering for Optimizers {
    fn lower(&mut self, call: &mut Call<'_, '_, '_>) -> Outcome {
        match self.step(&mut call.edits, call.cx.target, call.op) {
            Known::Yes => Outcome::Done,
            Known::No => Outcome::KeptAsRecorded(Reason {
                code: "optimizer-as-recorded",
                message: format!(
                    "{} has no rule: its step is kept as the CPU ran it. If it inherits the loop of a \
                     torch.optim class, CUDA runs that over whole lists and may take one more copy of \
                     all parameters",
                    call.name()
                ),
            }),
        }
    }
}

/// Returns whether the step is one of parameters that the program keeps on the host: all that it makes is there.
fn is_on_host(edits: &Edits<'_, '_>, mark: OpId) -> bool {
    let profile = edits.profile();
    // Numbers are on the host in any case.
    let made = edits.blocks_in(mark).into_iter().map(|id| profile.block(id));
    let mut made = made.filter(|block| block.size.get() > SCALAR).peekable();
    made.peek().is_some() && made.all(|block| block.residency == Residency::HostOnly)
}

/// Returns whether the recording was made with `foreach=True` or `fused=True`: then it is right as it is.
fn runs_on_lists(draft: &Draft<'_>, own: &[OpId]) -> bool {
    own.iter().any(|&op| {
        let name = draft.profile().op_name(op);
        name.starts_with("aten::_foreach_") || name.starts_with("aten::_fused_")
    })
}

/// Leaves out the temporaries of the loop.
fn drop_temporaries(edits: &mut Edits<'_, '_>, mark: OpId, first: &Update) {
    let profile = edits.profile();
    let (from, to) = (profile.op_start(first.ops[0]), profile.op_end(mark));
    let thread = profile.op_thread(mark);
    for block in profile.blocks_between(from, to).map(BlockId::new) {
        let ours = profile.block(block).thread == thread && !edits.escapes(block, mark);
        if ours && !is_copied_to_state(edits, mark, block) {
            edits.drop_block(block);
        }
    }
}

/// Numbers that Python turns into tensors (`step_t += 1`, `torch.as_tensor(1.0)`) stay on the host.
fn drop_numbers(edits: &mut Edits<'_, '_>, mark: OpId) {
    let profile = edits.profile();
    for id in edits.blocks_in(mark) {
        let block = profile.block(id);
        let wrapped = block.op.is_some_and(|op| {
            let made =
                profile.op_name(op) == "aten::empty" && profile.tree.parent(op) == Some(mark);
            op == mark || made
        });
        let number = wrapped && block.size.get() <= SCALAR && !edits.escapes(id, mark);
        if number && !is_copied_to_state(edits, mark, id) {
            edits.drop_block(id);
        }
    }
}

/// Returns whether a number is made on the parameter's device to be cloned (torch/optim/asgd.py,
/// `_init_group`: `eta`).
fn is_copied_to_state(draft: &Draft<'_>, mark: OpId, block: BlockId) -> bool {
    let profile = draft.profile();
    let small = |block: BlockId| profile.block(block).size.get() <= SCALAR;
    let next = block.index() + 1;
    if next >= profile.blocks.len() {
        return false;
    }
    let next = BlockId::new(next);
    small(block) && small(next) && draft.escapes(next, mark) && updates::made_in_loop(profile, next)
}

/// Step counters and the like, where the GPU has them: 0-dimensional fp32 tensors
/// (torch/optim/optimizer.py, `_get_scalar_dtype`).
fn put_scalars(
    edits: &mut Edits<'_, '_>,
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
    for id in edits.blocks_in(mark) {
        let block = edits.profile().block(id);
        let scalar = block.role == Role::OptimizerState && block.residency == Residency::HostOnly;
        if let Some(op) = block.op.filter(|_| scalar && edits.escapes(id, mark)) {
            let (alloc, free) = (edits.item(id).alloc(), edits.item(id).free());
            let role = Role::OptimizerState;
            edits.add(Addition { size: block.size, alloc, free, role, op });
        }
    }
}
