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
            shows: "softmax reads a passing cast copy; its wide result stays for its own backward",
            script: scores(),
            target: target(),
            requests: expect![[r#"
                softmax reads a passing cast copy; its wide result stays for its own backward
                    + h 4096 temporary
                on  + autocast-wide#1 8192 temporary
                on  + weights 8192 activation autocast-wide
                on  - autocast-wide#1
                off + weights 4096 activation
                    - h
                on  + autocast-wide#2 4096 activation
                    + y 4096 activation
                on  + g_weights 4096 temporary autocast-wide
                off + g_weights 4096 temporary
                    + cublas-workspace#1 8519680 workspace
                    - y
                on  + autocast-wide#3 8192 temporary
                on  - g_weights
                on  - autocast-wide#2
                on  + g_h 8192 temporary autocast-wide
                on  + softmax-backward#1 8192 workspace
                off + g_h 4096 temporary
                off + softmax-backward#1 4096 workspace
                    - softmax-backward#1
                on  - autocast-wide#3
                off - g_weights
                    - weights
                on  + autocast-wide#4 4096 temporary
                    - g_h
                on  - autocast-wide#4
            "#]],
        },
        Case {
            rule: "autocast-wide",
            shows: "group_norm keeps a cast copy of its input, an upsampled result is wide",
            script: normalised(),
            target: target(),
            requests: expect![[r#"
                group_norm keeps a cast copy of its input, an upsampled result is wide
                on  + h 4096 activation autocast-wide
                on  + autocast-wide#1 8192 activation
                on  + normal 8192 temporary autocast-wide
                on  + longer 16384 activation autocast-wide
                off + h 4096 activation
                off + normal 4096 temporary
                off + longer 8192 activation
                    - normal
                on  - h
                on  + autocast-wide#2 8192 activation
                    + y 8192 activation
                on  - longer
                on  + g_longer 8192 temporary autocast-wide
                off + g_longer 8192 temporary
                    + cublas-workspace#1 8519680 workspace
                    - y
                on  - autocast-wide#2
                on  + autocast-wide#3 16384 temporary
                off - longer
                off + g_normal 4096 temporary
                    - g_longer
                on  + g_normal 8192 temporary autocast-wide
                on  - autocast-wide#3
                on  + g_h 8192 temporary autocast-wide
                off + g_h 4096 temporary
                    - g_normal
                on  + autocast-wide#4 4096 temporary
                off - h
                    - g_h
                on  - autocast-wide#1
                on  - autocast-wide#4
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

/// `softmax(x @ w) @ w` over 64 x 32 values: 4096 bytes in bfloat16.
fn scores() -> Script {
    let value = "bf16[64,32]";
    let mut t = Script::default();
    t.iteration(0, |t| {
        product(t, 1, "h", 4096);
        t.makes_seq(2, "aten::softmax", &format!("{value} -1 -"), "weights", 4096);
        t.free("h");
        product(t, 3, "y", 4096);
        t.node(3, "MmBackward0", |t| {
            t.makes("aten::mm", value, "g_weights", 4096);
            t.free("y");
        });
        t.node(2, "SoftmaxBackward0", |t| {
            let arguments = format!("{value} {value} -1 15");
            t.makes("aten::_softmax_backward_data", &arguments, "g_h", 4096);
            t.free("g_weights weights");
        });
        t.node(1, "MmBackward0", |t| t.free("g_h"));
    });
    t
}

/// `upsample(group_norm(x @ w)) @ w`, of 64 x 32 values and twice as many.
fn normalised() -> Script {
    let value = "bf16[1,64,32]";
    let mut t = Script::default();
    t.iteration(0, |t| {
        product(t, 1, "h", 4096);
        t.op_seq(2, "aten::group_norm", &format!("{value} 2 - - 0.00001 True"), |t| {
            t.makes_seq(2, "aten::native_group_norm", value, "normal", 4096);
        });
        t.makes_seq(3, "aten::upsample_nearest1d", &format!("{value} [64] -"), "longer", 8192);
        t.free("normal");
        product(t, 4, "y", 8192);
        t.node(4, "MmBackward0", |t| {
            t.makes("aten::mm", "bf16[64,64]", "g_longer", 8192);
            t.free("y longer");
        });
        t.node(3, "UpsampleNearest1DBackward0", |t| {
            let name = "aten::upsample_nearest1d_backward";
            t.makes(name, "bf16[1,64,64] [64] [1,64,32] -", "g_normal", 4096);
            t.free("g_longer");
        });
        t.node(2, "NativeGroupNormBackward0", |t| {
            t.makes("aten::native_group_norm_backward", value, "g_h", 4096);
            t.free("g_normal h");
        });
        t.node(1, "MmBackward0", |t| t.free("g_h"));
    });
    t
}

/// A product under autocast, which dispatches the operator again within itself.
fn product(t: &mut Script, sequence: u32, output: &str, bytes: u64) {
    let layer = format!("bf16[64,{}] bf16[32,32]:1,32", bytes / 128);
    t.op_seq(sequence, "aten::matmul", &layer, |t| {
        t.makes_seq(sequence, "aten::matmul", &layer, output, bytes);
    });
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
