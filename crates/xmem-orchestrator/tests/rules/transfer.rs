//! Batches: where they are moved to the GPU.

use crate::support::{Case, Script, check, target};
use expect_test::expect;

const RULE: &str = "batch-transfer";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE,
            shows: "the loader makes the next batch while the last is there: one at a time on the GPU",
            script: loader(Moved::Yes),
            target: target(),
            requests: expect![[r#"
                the loader makes the next batch while the last is there: one at a time on the GPU
                    + w 8192 parameter model-placement
                on  + x0 8192 input batch-transfer
                off + x0 8192 input
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                off + x1 8192 input
                    - x0
                on  + x1 8192 input batch-transfer
                    - gw0
                    + y 8192 activation
                    + gw1 8192 gradient
                    - y
                off + x2 8192 input
                    - x1
                on  + x2 8192 input batch-transfer
                    - gw1
                    + y 8192 activation
                    + gw2 8192 gradient
                    - y
            "#]],
        },
        Case {
            rule: RULE,
            shows: "no call that moves them: left where they were made",
            script: loader(Moved::No),
            target: target(),
            requests: expect![[r#"
                no call that moves them: left where they were made
                    + w 8192 parameter model-placement
                    + x0 8192 input
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                    + x1 8192 input
                    - x0
                    - gw0
                    + y 8192 activation
                    + gw1 8192 gradient
                    - y
                    + x2 8192 input
                    - x1
                    - gw1
                    + y 8192 activation
                    + gw2 8192 gradient
                    - y
            "#]],
        },
        Case {
            rule: RULE,
            shows: "a list made before the loop: each batch while its iteration lasts",
            script: list(),
            target: target(),
            requests: expect![[r#"
                a list made before the loop: each batch while its iteration lasts
                    + w 8192 parameter model-placement
                on  + x0 8192 input batch-transfer
                off + x0 8192 input
                off + x1 8192 input
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                on  + x1 8192 input batch-transfer
                on  - x0
                    - gw0
                    + y 8192 activation
                    + gw1 8192 gradient
                    - y
                off - x0
                    - x1
            "#]],
        },
        Case {
            rule: RULE,
            shows: "a whole data set that is moved before the loop",
            script: data_set(),
            target: target(),
            requests: expect![[r#"
                a whole data set that is moved before the loop
                    + w 8192 parameter model-placement
                on  + batch-transfer#1 32768 input
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                    - gw0
                    + y 8192 activation
                    + gw1 8192 gradient
                    - y
            "#]],
        },
    ]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moved {
    Yes,
    No,
}

/// Two batches, made first; two iterations.
fn list() -> Script {
    let mut t = Script::default();
    t.parameter("w", &[64, 32]);
    t.makes("aten::randn", "(64,32)", "x0", 8192);
    t.makes("aten::randn", "(64,32)", "x1", 8192);
    for i in 0..2 {
        t.iteration(i, |t| {
            t.op("aten::to", "f32[64,32] 0 - - - False False -", |_| ());
            step(t, i);
        });
    }
    t.free("x0 x1");
    t
}

fn data_set() -> Script {
    let mut t = Script::default();
    t.parameter("w", &[64, 32]);
    t.makes("aten::randn", "(256,32)", "all", 32768);
    t.op("aten::to", "f32[256,32] 0 - - - False False -", |_| ());
    for i in 0..2 {
        t.iteration(i, |t| step(t, i));
    }
    t
}

/// Three iterations; each makes its batch before it drops the last.
fn loader(moved: Moved) -> Script {
    let mut t = Script::default();
    t.parameter("w", &[64, 32]);
    for i in 0..3 {
        t.iteration(i, |t| {
            let x = format!("x{i}");
            t.makes("aten::stack", "{32;32} 0", &x, 8192);
            if i > 0 {
                t.free(&format!("x{}", i - 1));
            }
            if moved == Moved::Yes {
                t.op("aten::to", "f32[64,32] 0 - - - False False -", |_| ());
            }
            step(t, i);
        });
    }
    t
}

fn step(t: &mut Script, i: u32) {
    t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| {
        if i > 0 {
            t.free(&format!("gw{}", i - 1));
        }
    });
    pass(t, i);
}

/// Forward, backward and a step.
pub(crate) fn pass(t: &mut Script, i: u32) {
    t.makes_seq(i + 1, "aten::mul", "f32[64,32] f32[64,32]", "y", 8192);
    t.node(i + 1, "MulBackward0", |t| {
        t.makes("aten::mul", "f32[64,32] f32[64,32]", &format!("gw{i}"), 8192);
        t.free("y");
    });
    t.accumulate("f32[64,32]");
    t.mark("Optimizer.step#SGD.step", |t| {
        t.op("aten::add_", "f32[64,32] f32[64,32] -0.1", |_| ());
    });
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
