//! Autocast: where CUDA's operator lists differ from the CPU's.

use crate::support::{Case, Script, check, target};
use expect_test::expect;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: "autocast-loss",
            shows: "16-bit logits: log-softmax stays narrow, nll_loss keeps a wide cast",
            script: cross_entropy(),
            target: target(),
            requests: expect![[r#"
                16-bit logits: log-softmax stays narrow, nll_loss keeps a wide cast
                    + logits 1024 activation
                on  + logp 1024 activation autocast-loss
                on  + autocast-loss#1 2048 activation
                off + cast 2048 temporary
                off + logp 2048 activation
                    + loss 4 activation
                    + total_weight 4 activation
                off - cast
                    + seed 4 temporary
                on  + g_logp 2048 temporary autocast-loss
                off + g_logp 2048 temporary
                    - total_weight
                on  - autocast-loss#1
                on  + autocast-loss#2 1024 temporary
                on  - g_logp
                on  + g_cast 1024 temporary autocast-loss
                off + g_cast 2048 temporary
                    - logp
                on  - autocast-loss#2
                off - g_logp
                off + g_logits 1024 temporary
                    - g_cast
                off - g_logits
                    - logits
                    - loss
                    - seed
            "#]],
        },
        Case {
            rule: "autocast-loss",
            shows: "32-bit logits: nothing differs",
            script: plain_cross_entropy(),
            target: target(),
            requests: expect![[r#"
                32-bit logits: nothing differs
                    + logits 2048 input
                    + logp 2048 activation
                    + loss 4 activation
                    + total_weight 4 activation
                    + g_logp 2048 temporary
                    + g_logits 2048 gradient
                    - logp
                    - g_logp
                    - total_weight
                    - logits
                    - loss
                    - g_logits
            "#]],
        },
        Case {
            rule: "autocast-wide",
            shows: "pow casts up, its result and what is computed from it are wide until the matrix product",
            script: powers(Autocast::On),
            target: target(),
            requests: expect![[r#"
                pow casts up, its result and what is computed from it are wide until the matrix product
                on  + h 4096 activation autocast-wide
                on  + autocast-wide#1 8192 activation
                on  + cubed 8192 activation autocast-wide
                on  + product 8192 activation autocast-wide
                on  - h
                on  + autocast-wide#2 4096 activation
                off + h 4096 activation
                off + cubed 4096 activation
                off + product 4096 activation
                    + y 4096 activation
                on  - product
                    + seed 4 temporary
                on  + g_product 4096 temporary autocast-wide
                off + g_product 4096 temporary
                    - y
                on  - autocast-wide#2
                on  + autocast-wide#3 8192 temporary
                on  - g_product
                on  + g_cubed 8192 temporary autocast-wide
                off - product
                off + g_cubed 4096 temporary
                    - cubed
                on  - autocast-wide#3
                on  + gh 8192 temporary autocast-wide
                off - g_product
                off + gh 4096 temporary
                off - h
                    - g_cubed
                on  + autocast-wide#4 4096 temporary
                    - gh
                on  - autocast-wide#1
                on  - autocast-wide#4
                    - seed
            "#]],
        },
        Case {
            rule: "autocast-wide",
            shows: "the same on a bfloat16 model without autocast: nothing differs",
            script: powers(Autocast::Off),
            target: target(),
            requests: expect![[r#"
                the same on a bfloat16 model without autocast: nothing differs
                    + h 4096 activation
                    + cublas-workspace#1 8519680 workspace
                    + cubed 4096 activation
                    + product 4096 activation
                    + y 4096 activation
                    + seed 4 temporary
                    + g_product 4096 temporary
                    - y
                    - product
                    + g_cubed 4096 temporary
                    - cubed
                    - g_product
                    + gh 4096 temporary
                    - h
                    - g_cubed
                    - gh
                    - seed
            "#]],
        },
    ]
}

/// 32 rows of 16 bfloat16 logits: 1024 bytes, 2048 in 32 bits.
fn cross_entropy() -> Script {
    let mut t = Script::default();
    let rest = "i64[32] - 1 -100 0.0";
    t.iteration(0, |t| {
        t.makes_seq(1, "aten::add", "bf16[32,16] bf16[16] 1", "logits", 1024);
        t.op_seq(2, "aten::cross_entropy_loss", &format!("bf16[32,16] {rest}"), |t| {
            t.op_seq(2, "aten::to", "bf16[32,16] 6 False False -", |t| {
                t.makes_seq(2, "aten::_to_copy", "bf16[32,16] 6 - - - False -", "cast", 2048);
            });
            t.op_seq(3, "aten::cross_entropy_loss", &format!("f32[32,16] {rest}"), |t| {
                t.op_seq(3, "aten::log_softmax", "f32[32,16] 1 -", |t| {
                    t.makes_seq(3, "aten::_log_softmax", "f32[32,16] 1 False", "logp", 2048);
                });
                t.op_seq(4, "aten::nll_loss_forward", "f32[32,16] i64[32] - 1 -100", |t| {
                    t.alloc("loss", 4);
                    t.alloc("total_weight", 4);
                });
                t.free("cast");
            });
        });
        t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
        t.node(4, "NllLossBackward0", |t| {
            t.makes("aten::nll_loss_backward", "f32[] f32[32,16] i64[32]", "g_logp", 2048);
            t.free("total_weight");
        });
        t.node(3, "LogSoftmaxBackward0", |t| {
            let arguments = "f32[32,16] f32[32,16] 1 6";
            t.makes("aten::_log_softmax_backward_data", arguments, "g_cast", 2048);
            t.free("logp g_logp");
        });
        t.node(2, "ToCopyBackward0", |t| {
            t.op("aten::to", "f32[32,16] 15 False False -", |t| {
                t.makes("aten::_to_copy", "f32[32,16] 15 - - - False -", "g_logits", 1024);
            });
            t.free("g_cast");
        });
        t.node(1, "AddBackward0", |t| t.free("g_logits"));
        t.free("logits loss seed");
    });
    t
}

fn plain_cross_entropy() -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.makes_seq(1, "aten::add", "f32[32,16] f32[16] 1", "logits", 2048);
        t.op_seq(2, "aten::cross_entropy_loss", "f32[32,16] i64[32] - 1 -100 0.0", |t| {
            t.makes_seq(2, "aten::_log_softmax", "f32[32,16] 1 False", "logp", 2048);
            t.op_seq(3, "aten::nll_loss_forward", "f32[32,16] i64[32] - 1 -100", |t| {
                t.alloc("loss", 4);
                t.alloc("total_weight", 4);
            });
        });
        t.node(3, "NllLossBackward0", |t| t.alloc("g_logp", 2048));
        t.node(2, "LogSoftmaxBackward0", |t| {
            t.alloc("g_logits", 2048);
            t.free("logp g_logp total_weight");
        });
        t.free("logits loss g_logits");
    });
    t
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Autocast {
    On,
    Off,
}

/// `(p * p) @ w` of `p = (x @ w) ** 3` over 64 x 32 values: 4096 bytes in bfloat16.
fn powers(autocast: Autocast) -> Script {
    let value = "bf16[64,32]";
    let product = |t: &mut Script, sequence: u32, output: &str| {
        let layer = "bf16[64,32] bf16[32,32]:1,32";
        // Autocast dispatches the operator again within itself.
        t.op_seq(sequence, "aten::matmul", layer, |t| match autocast {
            Autocast::On => t.makes_seq(sequence, "aten::matmul", layer, output, 4096),
            Autocast::Off => t.makes_seq(sequence, "aten::mm", layer, output, 4096),
        });
    };
    let mut t = Script::default();
    t.iteration(0, |t| {
        product(t, 1, "h");
        t.makes_seq(2, "aten::pow", &format!("{value} 3"), "cubed", 4096);
        t.makes_seq(3, "aten::mul", &format!("{value} {value}"), "product", 4096);
        product(t, 4, "y");
        t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
        t.node(4, "MmBackward0", |t| {
            t.makes("aten::mul", value, "g_product", 4096);
            t.free("y product");
        });
        t.node(3, "MulBackward0", |t| {
            t.makes("aten::mul", &format!("{value} {value}"), "g_cubed", 4096);
            t.free("cubed g_product");
        });
        t.node(2, "PowBackward0", |t| {
            t.makes("aten::mul", &format!("{value} {value}"), "gh", 4096);
            t.free("h g_cubed");
        });
        t.node(1, "MmBackward0", |t| t.free("gh"));
        t.free("seed");
    });
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
