//! Parameters, optimizer state and gradients that were made before the recording began are added: the
//! trace shows them only as arguments. Gradients among them are freed where they are first cleared after
//! the backward pass that added to them.

use crate::frame::context::Context;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::{Edits, Place};
use crate::rule::Rule;
use xmem_analyzer::{Phase, Profile, Residency, Role};
use xmem_types::Nanos;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "preexisting",
        summary: "parameters and optimizer state made before the recording began are added",
        source: "xMem paper, section 3; the optimizer's and the backward's recorded input shapes",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(add_preexisting),
};

fn add_preexisting(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    let cleared = clearing_of_first_gradients(cx.profile).map_or(Place::NEVER, Place::before);
    for known in &cx.profile.preexisting {
        if known.residency == Residency::HostOnly {
            continue;
        }
        let free = if known.role == Role::Gradient { cleared } else { Place::NEVER };
        for _ in 0..known.count {
            edits.add_preexisting(known.size, known.role, free);
        }
    }
}

/// The time at which gradients of before the recording are freed. If no later backward pass makes new
/// ones, clearing keeps them (`zero_grad(set_to_none=False)`).
fn clearing_of_first_gradients(profile: &Profile) -> Option<Nanos> {
    let first = profile.phases.iter().find(|s| s.phase == Phase::Backward)?.start;
    let mut clearings = profile.phases.iter().filter(|s| s.phase == Phase::ZeroGrad);
    let cleared = clearings.find(|s| s.start > first)?.start;
    let mut later = profile.blocks.iter().filter(|b| b.alloc_time > cleared);
    later.any(|b| b.role == Role::Gradient).then_some(cleared)
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::job::{Begin, Clear, adam, train};
    use crate::testing::{Case, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "the recording starts late: parameters and Adam's state are added",
                script: train(Begin::Later, 2, "Adam", Clear::IterationStart, |t, _| adam(t, 1)),
                target: target(),
                requests: expect![[r#"
                    the recording starts late: parameters and Adam's state are added
                    on  + preexisting#1 4096 parameter
                    on  + preexisting#2 128 parameter
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
                        + gb0 128 gradient
                        + gw0 4096 gradient
                        - gy
                        - seed
                        - loss
                    on  + preexisting#3 4096 optimizer_state
                    on  + preexisting#4 4096 optimizer_state
                    on  + preexisting#5 128 optimizer_state
                    on  + preexisting#6 128 optimizer_state
                        + optimizer-step#1 4096 temporary
                        + optimizer-step#2 128 temporary
                        - optimizer-step#2
                        - optimizer-step#1
                        - gw0
                        - gb0
                    on  + x0 1024 input
                    off + x1 1024 input
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
                    on  + gb0 128 gradient
                    on  + gw0 4096 gradient
                    off + gb1 128 gradient
                    off + gw1 4096 gradient
                        - gy
                        - seed
                        - loss
                        + optimizer-step#3 4096 temporary
                        + optimizer-step#4 128 temporary
                        - optimizer-step#4
                        - optimizer-step#3
                    on  - gw0
                    on  - gb0
                    on  + x1 1024 input
                    on  - x0
                    on  + h 1024 temporary
                    on  + y 1024 activation
                    on  - h
                    on  + loss-buffers#3 1024 workspace
                    on  + loss 4 activation
                    on  - loss-buffers#3
                    on  + seed 4 temporary
                    on  + gy 1024 temporary
                    on  - y
                    on  + gb1 128 gradient
                    on  + gw1 4096 gradient
                    on  - gy
                    on  - seed
                    on  - loss
                    on  + optimizer-step#5 4096 temporary
                    on  + optimizer-step#6 128 temporary
                    on  - optimizer-step#6
                    on  - optimizer-step#5
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "the recording starts with the model: nothing is added",
                script: train(Begin::Model, 1, "Adam", Clear::IterationStart, adam),
                target: target(),
                requests: expect![[r#"
                    the recording starts with the model: nothing is added
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
                        + gb0 128 gradient
                        + gw0 4096 gradient
                        - gy
                        - seed
                        - loss
                        + w.exp_avg 4096 optimizer_state
                        + w.exp_avg_sq 4096 optimizer_state
                        + b.exp_avg 128 optimizer_state
                        + b.exp_avg_sq 128 optimizer_state
                        + optimizer-step#1 4096 temporary
                        + optimizer-step#2 128 temporary
                        - optimizer-step#2
                        - optimizer-step#1
                "#]],
            },
        ]
    }
}
