//! A what-if: gradients are zeroed in place and never freed (`zero_grad(set_to_none=False)`). The first
//! iteration's gradients stay; later ones are added into them and live no longer than the backward node that
//! made them.

use crate::frame::context::Context;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::{Draft, Edits, ItemId, Place};
use crate::rule::Rule;
use xmem_analyzer::Role;
use xmem_types::IterationId;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "set-to-none",
        summary: "what-if: gradients are zeroed in place and never freed",
        source: "torch/optim/optimizer.py `Optimizer.zero_grad(set_to_none)`",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(keep_gradients),
};

fn keep_gradients(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    if cx.target.set_to_none {
        return;
    }
    let profile = cx.profile;
    for id in gradients(edits) {
        let place = edits.item(id).origin().place(profile);
        match place.iteration {
            Some(IterationId(0)) => edits.move_free(id, Place::NEVER),
            Some(_) => {
                let path = place.op.into_iter().flat_map(|op| profile.tree.path(op));
                let node = path.filter(|&op| !profile.is_annotation(op)).last();
                let made = edits.item(id).alloc().time();
                let done = node.map_or(made, |op| profile.op_end(op));
                let free = edits.next(Place::after(done));
                edits.move_free(id, free);
            }
            None => {}
        }
    }
}

/// The gradients that are in the schedule.
pub(super) fn gradients(draft: &Draft<'_>) -> Vec<ItemId> {
    let items = draft.items().filter(|(_, item)| item.is_live() && item.role() == Role::Gradient);
    items.map(|(id, _)| id).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::rules::zero_grad::tests::sgd;
    use crate::target::Target;
    use crate::testing::job::Clear;
    use crate::testing::{Case, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![Case {
            rule: RULE.name,
            shows: "the first gradients stay for ever, later ones are added to them",
            script: sgd(Clear::IterationStart),
            target: Target { set_to_none: false, ..target() },
            requests: expect![[r#"
                    the first gradients stay for ever, later ones are added to them
                        + w 4096 parameter model-placement
                        + b 128 parameter model-placement
                        + x0 1024 input
                        + h 1024 temporary
                        + y 1024 activation
                        - h
                        + loss-buffers#1 1024 workspace
                        + loss 4 activation
                        - loss-buffers#1
                        + seed 4 temporary
                        + gy 1024 temporary
                        - y
                    on  + gb0 128 gradient set-to-none
                    on  + gw0 4096 gradient set-to-none
                    off + gb0 128 gradient
                    off + gw0 4096 gradient
                        - gy
                        - seed
                        - loss
                    off - gw0
                    off - gb0
                        + x1 1024 input
                        - x0
                        + h 1024 temporary
                        + y 1024 activation
                        - h
                        + loss-buffers#2 1024 workspace
                        + loss 4 activation
                        - loss-buffers#2
                        + seed 4 temporary
                        + gy 1024 temporary
                        - y
                    on  + gb1 128 gradient set-to-none
                    on  - gb1
                    on  + gw1 4096 gradient set-to-none
                    off + gb1 128 gradient
                    off + gw1 4096 gradient
                        - gy
                    on  - gw1
                        - seed
                        - loss
                "#]],
        }]
    }
}
