//! The passes over a schedule, in their order.

pub(crate) mod first_iteration;

use crate::frame::context::Context;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::{Draft, Edits};
use crate::rule::RuleId;
use crate::rules::{
    DEFINITIONS, autocast_wide, batch_transfer, host_copy, host_only, host_scalars, leaf_scratch,
    model_placement, preexisting, promoted_operands, set_to_none, zero_grad,
};
use crate::unmodeled;
use crate::walk;
use xmem_types::Diagnostics;

/// A step of the lowering.
enum Step {
    /// A rule about the whole schedule.
    Rule(&'static RuleDefinition),
    /// Every rule about operators, operator by operator in program order.
    Operators,
    /// The memory of operators without a CUDA model.
    Unmodeled,
}

/// A step, and the reason for its place.
struct Pass {
    step: Step,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers, and for the book's page"))]
    because: &'static str,
}

const fn pass(step: Step, because: &'static str) -> Pass {
    Pass { step, because }
}

/// Every pass, from the particular to the general.
const PASSES: &[Pass] = &[
    pass(
        Step::Rule(&host_only::RULE),
        "first: no later rule may take memory of the host for an operand",
    ),
    pass(
        Step::Rule(&host_scalars::RULE),
        "before operators: a wrapped number is not an output of the operator that reads it",
    ),
    pass(
        Step::Rule(&promoted_operands::RULE),
        "before operators: a converted copy is not an output either; after host-scalars, which \
         takes the copies of numbers",
    ),
    pass(
        Step::Rule(&autocast_wide::RULE),
        "before operators: they find the sizes that autocast gives their results on CUDA",
    ),
    pass(
        Step::Operators,
        "before leaf-scratch: they know which of the blocks inside CUDA requests, too",
    ),
    pass(
        Step::Rule(&leaf_scratch::RULE),
        "after operators: it drops the scratch that no rule has decided about",
    ),
    pass(
        Step::Unmodeled,
        "after leaf-scratch: it tells what operators keep from what they use on the way",
    ),
    pass(
        Step::Rule(&preexisting::RULE),
        "before zero-grad and set-to-none, which move the gradients that it adds",
    ),
    pass(
        Step::Rule(&model_placement::RULE),
        "after operators, whose rules look for blocks where the CPU made them",
    ),
    pass(
        Step::Rule(&batch_transfer::RULE),
        "after model-placement: a transfer that a parameter accounts for is not a batch",
    ),
    pass(
        Step::Rule(&host_copy::RULE),
        "after batch-transfer: the buffer of a copy comes after the tensor that it fills",
    ),
    pass(Step::Rule(&zero_grad::RULE), "after everything that makes gradients or moves them"),
    pass(
        Step::Rule(&set_to_none::RULE),
        "last: gradients that are kept are kept wherever they are cleared",
    ),
];

/// Applies every pass whose rule is switched on.
pub(crate) fn run<'p>(draft: &mut Draft<'p>, cx: &Context<'p>, notes: &mut Diagnostics) {
    for pass in PASSES {
        match pass.step {
            Step::Operators => walk::operators(draft, cx, notes),
            Step::Unmodeled => unmodeled::mark(&mut Edits::of(draft, id(&leaf_scratch::RULE))),
            Step::Rule(rule) => {
                if let (true, Applies::AsPass(apply)) = (cx.enables(rule), &rule.applies) {
                    apply(cx, &mut Edits::of(draft, id(rule)));
                }
            }
        }
    }
}

/// The name of each pass and the reason for its place, in order: for the page of the book.
#[cfg(test)]
pub(crate) fn reasons() -> impl Iterator<Item = (&'static str, &'static str)> {
    let name = |step: &Step| match step {
        Step::Rule(rule) => rule.rule.name,
        Step::Operators => "rules about operators",
        Step::Unmodeled => "operators without a model",
    };
    PASSES.iter().map(move |pass| (name(&pass.step), pass.because))
}

/// The id of a rule: its place among all of them.
fn id(rule: &'static RuleDefinition) -> RuleId {
    let index = DEFINITIONS.iter().position(|other| std::ptr::eq(*other, rule));
    RuleId::new(index.expect("every rule is registered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_about_the_whole_schedule_has_one_place_and_a_reason() {
        for rule in DEFINITIONS {
            let here = |p: &&Pass| matches!(p.step, Step::Rule(r) if std::ptr::eq(r, *rule));
            let places = PASSES.iter().filter(here).count();
            let expected = usize::from(matches!(rule.applies, Applies::AsPass(_)));
            assert_eq!(places, expected, "{}", rule.name);
        }
        assert!(PASSES.iter().all(|p| p.because.split_whitespace().count() > 5));
    }
}
