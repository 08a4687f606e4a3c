//! What-ifs about gradients.

use crate::support::job::{Begin, Clear, train};
use crate::support::{Case, Script, check, lowered, target};
use expect_test::expect;
use xmem_analyzer::Role;
use xmem_orchestrator::{Target, ZeroGradPlace};

pub(crate) fn cases() -> Vec<Case> {
    let moved = |place| Target { zero_grad: Some(place), ..target() };
    vec![
        Case {
            rule: "zero-grad",
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
            rule: "zero-grad",
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
        Case {
            rule: "set-to-none",
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
        },
    ]
}

fn sgd(clear: Clear) -> Script {
    train(Begin::Model, 2, "SGD", clear, |t, _| {
        t.op("aten::add_", "f32[32,32] f32[32,32] -0.1", |_| ());
        t.op("aten::add_", "f32[32] f32[32] -0.1", |_| ());
    })
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}

/// Gradients that were there before the recording and that no pass makes anew were freed at the first
/// zero_grad, though that only zeroes them (`set_to_none=False`).
#[test]
fn gradients_that_are_zeroed_stay() {
    let mut t = Script::default();
    for i in 0..2 {
        t.iteration(i, |t| {
            t.makes_seq(i, "aten::mul", "f32[8,32] f32[32,32]", "y", 1024);
            t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
            t.node(i, "MulBackward0", |t| {
                t.makes("aten::mul", "f32[8,32] f32[8,32]", "gw", 4096);
            });
            let node = "torch::autograd::AccumulateGrad";
            t.op(&format!("autograd::engine::evaluate_function: {node}"), "", |t| {
                t.op(node, "f32[32,32]", |t| {
                    t.op("aten::add_", "f32[32,32] f32[32,32] 1", |_| ());
                });
                t.free("gw");
            });
            t.free("y seed");
            t.mark("Optimizer.step#SGD.step", |t| {
                t.op("aten::add_", "f32[32,32] f32[32,32] -0.1", |_| ());
            });
            t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| {
                t.op("aten::zero_", "f32[32,32]", |_| ());
            });
        });
    }
    let (schedule, _) = lowered(&t, &target());
    let kept = |id| {
        let block = schedule.block(id);
        block.role == Role::Gradient && block.rule == Some("preexisting")
    };
    let requests: Vec<_> = schedule.requests.iter().filter(|r| kept(r.block)).collect();
    assert_eq!(requests.len(), 1, "put in once, and never freed");
}
