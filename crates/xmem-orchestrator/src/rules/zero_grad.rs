//! A what-if: gradients are cleared at another place of the loop (`--zero-grad`). In the xMem paper's terms
//! (section 3), position 0 is just before backward, position 1 the start of the iteration.

use super::set_to_none::gradients;
use crate::frame::context::Context;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::{Edits, Place};
use crate::rule::Rule;
use crate::target::ZeroGradPlace;
use xmem_analyzer::{Phase, PhaseSpan, Profile};
use xmem_types::{IterationId, Nanos};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "zero-grad",
        summary: "what-if: gradients are cleared at another place of the loop",
        source: "xMem paper, section 3 (zero_grad positions); torch/optim/optimizer.py `Optimizer.zero_grad`",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(move_zero_grad),
};

/// Moves the clearing of gradients to the wanted place of the iteration after the one that made them.
fn move_zero_grad(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    let Some(place) = cx.target.zero_grad else { return };
    let profile = cx.profile;
    for id in gradients(edits) {
        let item = edits.item(id);
        let Some(made) = item.origin().place(profile).iteration else { continue };
        if item.free().is_never() {
            continue;
        }
        // Gradients that are gone before their own step is over are not cleared by zero_grad.
        let cleared = profile.phase_at(item.free().time()).and_then(|s| s.iteration);
        if cleared.is_none_or(|c| c <= made) {
            continue;
        }
        let Some(time) = clearing(profile, IterationId(made.0 + 1), place) else { continue };
        let free = edits.next(Place::before(time));
        edits.move_free(id, free);
    }
}

/// The time at which an iteration would clear gradients.
fn clearing(profile: &Profile, iteration: IterationId, place: ZeroGradPlace) -> Option<Nanos> {
    // Phases are in order of their iterations; those of none come first.
    let phases = &profile.phases;
    let first = phases.partition_point(|s| s.iteration < Some(iteration));
    let spans = || phases[first..].iter().take_while(move |s| s.iteration == Some(iteration));
    let start = |s: &PhaseSpan| s.start;
    match place {
        ZeroGradPlace::BeforeBackward => spans().find(|s| s.phase == Phase::Backward).map(start),
        ZeroGradPlace::IterationStart => spans().next().map(start),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::target::Target;
    use crate::target::ZeroGradPlace;
    use crate::testing::job::{Begin, Clear, train};
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        let moved = |place| Target { zero_grad: Some(place), ..target() };
        vec![
            Case {
                rule: RULE.name,
                shows: "pos0: gradients stay until just before backward",
                script: sgd(Clear::IterationStart),
                target: moved(ZeroGradPlace::BeforeBackward),
                requests: expect![[r#"
                    pos0: gradients stay until just before backward
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
                    on  + gb0 128 gradient zero-grad
                    on  + gw0 4096 gradient zero-grad
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
                    on  - gb0
                    on  - gw0
                        + seed 4 temporary
                        + gy 1024 temporary
                        - y
                        + gb1 128 gradient
                        + gw1 4096 gradient
                        - gy
                        - seed
                        - loss
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "pos1: gradients go at the start of the iteration",
                script: sgd(Clear::BeforeBackward),
                target: moved(ZeroGradPlace::IterationStart),
                requests: expect![[r#"
                    pos1: gradients go at the start of the iteration
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
                    on  + gb0 128 gradient zero-grad
                    on  + gw0 4096 gradient zero-grad
                    off + gb0 128 gradient
                    off + gw0 4096 gradient
                        - gy
                        - seed
                        - loss
                    on  - gb0
                    on  - gw0
                        + x1 1024 input
                        - x0
                        + h 1024 temporary
                        + y 1024 activation
                        - h
                        + loss-buffers#2 1024 workspace
                        + loss 4 activation
                        - loss-buffers#2
                    off - gw0
                    off - gb0
                        + seed 4 temporary
                        + gy 1024 temporary
                        - y
                        + gb1 128 gradient
                        + gw1 4096 gradient
                        - gy
                        - seed
                        - loss
                "#]],
            },
        ]
    }

    pub(crate) fn sgd(clear: Clear) -> Script {
        train(Begin::Model, 2, "SGD", clear, |t, _| {
            t.op("aten::add_", "f32[32,32] f32[32,32] -0.1", |_| ());
            t.op("aten::add_", "f32[32] f32[32] -0.1", |_| ());
        })
    }
}
