//! What the marks of `xmem profile` say of where memory is: the model, batches, data sets.

use crate::support::{Case, Script, check, target};
use crate::transfer::pass;
use expect_test::expect;

const MODEL: &str = "model-placement";
const BATCH: &str = "batch-transfer";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: MODEL,
            shows: "each parameter goes to the GPU at its mark, in the order of the marks",
            script: model(),
            target: target(),
            requests: expect![[r#"
                each parameter goes to the GPU at its mark, in the order of the marks
                on  + v 4096 buffer model-placement
                on  + w 8192 parameter model-placement
                off + w 8192 parameter
                off + v 4096 buffer
                    + x 8192 input batch-transfer
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                    - gw0
            "#]],
        },
        Case {
            rule: MODEL,
            shows: "weights of a mapped file are allocated where they are moved",
            script: mapped(),
            target: target(),
            requests: expect![[r#"
                weights of a mapped file are allocated where they are moved
                on  + model-placement#1 8192 parameter
                on  + x 8192 parameter model-placement
                off + x 8192 parameter
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                    - gw0
            "#]],
        },
        Case {
            rule: BATCH,
            shows: "a batch is on the GPU from its mark on, however often it is asked there",
            script: loader(),
            target: target(),
            requests: expect![[r#"
                a batch is on the GPU from its mark on, however often it is asked there
                    + w 8192 parameter model-placement
                on  + x0 8192 input batch-transfer
                off + x0 8192 input
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                    - gw0
                off + x1 8192 input
                    - x0
                on  + x1 8192 input batch-transfer
                    + y 8192 activation
                    + gw1 8192 gradient
                    - y
                    - gw1
            "#]],
        },
        Case {
            rule: BATCH,
            shows: "of what was there before the loop, each iteration makes a copy",
            script: list(),
            target: target(),
            requests: expect![[r#"
                of what was there before the loop, each iteration makes a copy
                    + w 8192 parameter model-placement
                on  + x0 8192 input batch-transfer
                off + x0 8192 input
                off + x1 8192 input
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                    - gw0
                on  + x1 8192 input batch-transfer
                on  - x0
                    + y 8192 activation
                    + gw1 8192 gradient
                    - y
                    - gw1
                on  + batch-transfer#1 8192 input
                on  - x1
                    + y 8192 activation
                    + gw2 8192 gradient
                    - y
                    - gw2
            "#]],
        },
        Case {
            rule: BATCH,
            shows: "batches of other processes are seen by their marks alone",
            script: shared(),
            target: target(),
            requests: expect![[r#"
                batches of other processes are seen by their marks alone
                    + w 8192 parameter model-placement
                on  + batch-transfer#1 8192 input
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                    - gw0
                on  + batch-transfer#2 8192 input
                on  - batch-transfer#1
                    + y 8192 activation
                    + gw1 8192 gradient
                    - y
                    - gw1
                on  + batch-transfer#3 8192 input
                on  - batch-transfer#2
                    + y 8192 activation
                    + gw2 8192 gradient
                    - y
                    - gw2
            "#]],
        },
        Case {
            rule: BATCH,
            shows: "a data set that is moved before the loop stays; its host copy is none",
            script: data_set(),
            target: target(),
            requests: expect![[r#"
                a data set that is moved before the loop stays; its host copy is none
                    + w 8192 parameter model-placement
                on  + all 16384 input batch-transfer
                on  + batch-transfer#1 4096 input
                off + all 16384 input
                    + x0 8192 input
                    + y 8192 activation
                    + gw0 8192 gradient
                    - y
                    - gw0
                    + x1 8192 input
                    + y 8192 activation
                    + gw1 8192 gradient
                    - y
                    - gw1
            "#]],
        },
    ]
}

fn model() -> Script {
    let mut t = Script::default();
    t.model(&[("w", &[64, 32]), ("v", &[64, 16])]);
    t.marked("to_device", "v");
    t.marked("to_device", "w");
    t.makes("aten::randn", "(64,32)", "between", 8192);
    t.makes("aten::randn", "(64,32)", "x", 8192);
    t.marked("to_device", "x");
    let (w, v) = (t.storage("w"), t.storage("v"));
    train(&mut t, 0);
    t.recording(&format!(
        r#""tensors": [
            {{"name": "w", "model": 0, "kind": "parameter", "storage": {{{w}}}}},
            {{"name": "v", "model": 0, "kind": "buffer", "storage": {{{v}}}}}]"#
    ));
    t
}

fn mapped() -> Script {
    let mut t = Script::default();
    t.marked_at("to_device", 0x10, 8192);
    t.makes("aten::randn", "(64,32)", "x", 8192);
    t.marked("to_device", "x");
    train(&mut t, 0);
    t.recording(
        r#""tensors": [{"name": "w", "model": 0, "kind": "parameter",
            "storage": {"address": "0x10", "bytes": 8192}}]"#,
    );
    t
}

fn loader() -> Script {
    let mut t = parameter();
    for i in 0..2 {
        let (x, raw) = (format!("x{i}"), format!("raw{i}"));
        t.makes("aten::stack", "{32;32} 0", &raw, 512);
        t.makes("aten::stack", "{32;32} 0", &x, 8192);
        if i > 0 {
            t.free(&format!("x{} raw{}", i - 1, i - 1));
        }
        t.marked("to_device", &x);
        t.marked("to_device", &x);
        train(&mut t, i);
    }
    t
}

fn list() -> Script {
    let mut t = parameter();
    t.makes("aten::randn", "(64,32)", "x0", 8192);
    t.makes("aten::randn", "(64,32)", "x1", 8192);
    for i in 0..3 {
        t.makes("aten::randperm", "2", &format!("order{i}"), 32);
        t.marked("to_device", &format!("x{}", i % 2));
        t.marked("to_device", &format!("x{}", i % 2));
        train(&mut t, i);
    }
    t
}

fn shared() -> Script {
    let mut t = parameter();
    for i in 0..3 {
        t.makes("aten::randperm", "2", &format!("order{i}"), 32);
        t.marked_at("to_device", 0x10 * u64::from(i % 2 + 1), 8192);
        train(&mut t, i);
    }
    t
}

fn data_set() -> Script {
    let mut t = parameter();
    t.makes("aten::randn", "(256,32)", "read", 32768);
    t.makes("aten::_to_copy", "f32[256,32]", "all", 16384);
    t.marked("to_device", "all");
    t.marked_at("to_device", 0x10, 4096);
    for i in 0..2 {
        t.makes("aten::index", "f32[256,32]", &format!("x{i}"), 8192);
        train(&mut t, i);
    }
    t
}

fn parameter() -> Script {
    let mut t = Script::default();
    t.parameter("w", &[64, 32]);
    t.marked("to_device", "w");
    t
}

fn train(t: &mut Script, i: u32) {
    pass(t, i);
    t.mark(&format!("xmem::iteration {}", i + 1), |_| ());
    t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| t.free(&format!("gw{i}")));
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
