//! Dropout, softmax and embeddings.

use crate::support::{Case, Script, check, target};
use expect_test::expect;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: "dropout-mask",
            shows: "training: the noise becomes a mask of one byte an element",
            script: dropout(),
            target: target(),
            requests: expect![[r#"
                training: the noise becomes a mask of one byte an element
                on  + noise 2048 activation dropout-mask
                off + noise 8192 activation
                    + y 8192 activation
                    + gx 8192 gradient
                    - noise
                    - y
                    - gx
            "#]],
        },
        Case {
            rule: "dropout-mask",
            shows: "a single block (feature dropout): left alone",
            script: dropout_of_one_block(),
            target: target(),
            requests: expect![[r#"
                a single block (feature dropout): left alone
                    + y 8192 activation
                    - y
            "#]],
        },
        Case {
            rule: "softmax-backward",
            shows: "grad * output, for the length of the call",
            script: softmax_backward(),
            target: target(),
            requests: expect![[r#"
                grad * output, for the length of the call
                    + p 8192 activation
                    + gx 8192 gradient
                on  + softmax-backward#1 8192 workspace
                on  - softmax-backward#1
                    - p
                    - gx
            "#]],
        },
        Case {
            rule: "embedding-backward",
            shows: "3072 indices: rows are added directly",
            script: embedding_backward(3072),
            target: target(),
            requests: expect![[r#"
                3072 indices: rows are added directly
                    + w 160000 parameter model-placement
                    + y 491520 activation
                    + gw 160000 gradient
                    - y
                    - gw
            "#]],
        },
        Case {
            rule: "embedding-backward",
            shows: "3073 indices: sorted, with nine buffers until the operator returns",
            script: embedding_backward(3073),
            target: target(),
            requests: expect![[r#"
                3073 indices: sorted, with nine buffers until the operator returns
                    + w 160000 parameter model-placement
                    + y 491680 activation
                on  + embedding-backward#1 24584 workspace
                on  + embedding-backward#2 24584 workspace
                on  + embedding-backward#3 24584 workspace
                on  + embedding-backward#4 67583 workspace
                on  - embedding-backward#4
                on  - embedding-backward#3
                    + gw 160000 gradient
                on  + embedding-backward#5 24584 workspace
                on  + embedding-backward#6 8 workspace
                on  + embedding-backward#7 24584 workspace
                on  + embedding-backward#8 1279 workspace
                on  - embedding-backward#8
                on  - embedding-backward#7
                on  + embedding-backward#9 8000 workspace
                on  + embedding-backward#10 8000 workspace
                on  + embedding-backward#11 1279 workspace
                on  - embedding-backward#11
                on  + embedding-backward#12 8 workspace
                on  + embedding-backward#13 10456 workspace
                on  + embedding-backward#14 209120 workspace
                on  - embedding-backward#14
                on  - embedding-backward#13
                on  - embedding-backward#12
                on  - embedding-backward#10
                on  - embedding-backward#9
                on  - embedding-backward#6
                on  - embedding-backward#5
                on  - embedding-backward#2
                on  - embedding-backward#1
                    - y
                    - gw
            "#]],
        },
    ]
}

fn dropout() -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.op_seq(1, "aten::dropout", "f32[64,32] 0.1 True", |t| {
            t.makes("aten::empty_like", "f32[64,32] - - - - 0", "noise", 8192);
            t.op("aten::bernoulli_", "f32[64,32] 0.9 -", |_| ());
            t.op("aten::div_", "f32[64,32] 0.9", |_| ());
            t.makes_seq(1, "aten::mul", "f32[64,32] f32[64,32]", "y", 8192);
        });
        t.node(1, "MulBackward0", |t| {
            t.makes("aten::mul", "f32[64,32] f32[64,32]", "gx", 8192);
            t.free("noise");
        });
        t.free("y gx");
    });
    t
}

fn dropout_of_one_block() -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.op_seq(1, "aten::dropout", "f32[64,32] 0.0 True", |t| t.alloc("y", 8192));
        t.node(1, "MulBackward0", |_| ());
        t.free("y");
    });
    t
}

fn softmax_backward() -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.makes_seq(1, "aten::_softmax", "f32[64,32] -1 False", "p", 8192);
        t.node(1, "SoftmaxBackward0", |t| {
            let arguments = "f32[64,32] f32[64,32] -1 6";
            t.makes("aten::_softmax_backward_data", arguments, "gx", 8192);
            t.free("p");
        });
        t.free("gx");
    });
    t
}

fn embedding_backward(indices: u64) -> Script {
    let mut t = Script::default();
    t.parameter("w", &[1000, 40]);
    t.iteration(0, |t| {
        let arguments = format!("f32[1000,40] i64[{indices}] -1 False False");
        t.makes_seq(1, "aten::embedding", &arguments, "y", indices * 160);
        t.node(1, "EmbeddingBackward0", |t| {
            let arguments = format!("f32[{indices},40] i64[{indices}] 1000 -1 False");
            t.makes("aten::embedding_dense_backward", &arguments, "gw", 160_000);
        });
        t.accumulate("f32[1000,40]");
        t.free("y gw");
    });
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
