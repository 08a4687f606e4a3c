//! scaled_dot_product_attention: CUDA's fused kernels instead of the CPU's.

use crate::support::case::on;
use crate::support::{Case, Script, check, target};
use expect_test::expect;

const RULE: &str = "attention";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: RULE,
            shows: "CPU flash, 32 bits: memory-efficient; row sums padded to 32 rows",
            script: flash("f32", 4, Layout::BatchFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, 32 bits: memory-efficient; row sums padded to 32 rows
                    + q 8192 input
                    + k 8192 input
                    + v 8192 input
                    + out 8192 activation
                on  + row_sums 1024 activation attention
                off + row_sums 256 activation
                    + gq 8192 gradient
                    + gk 8192 gradient
                    + gv 8192 gradient
                on  + attention#1 8192 workspace
                on  + attention#2 256 workspace
                on  + attention#3 256 workspace
                on  - attention#2
                on  - attention#1
                on  + attention#4 131200 workspace
                on  - attention#3
                on  - attention#4
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "CPU flash, bfloat16: flash; seed and offset, a 32-bit accumulator in backward",
            script: flash("bf16", 4, Layout::BatchFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, bfloat16: flash; seed and offset, a 32-bit accumulator in backward
                    + q 4096 input
                    + k 4096 input
                    + v 4096 input
                    + out 4096 activation
                    + row_sums 256 activation
                on  + attention#1 16 activation
                on  + attention#2 8 activation
                    + gq 4096 gradient
                    + gk 4096 gradient
                    + gv 4096 gradient
                on  + attention#3 4096 workspace
                on  + attention#4 131072 workspace
                on  - attention#4
                on  - attention#3
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                on  - attention#1
                on  - attention#2
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "CPU flash, bfloat16, fewer key heads: backward expands key and value gradients",
            script: flash("bf16", 2, Layout::BatchFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, bfloat16, fewer key heads: backward expands key and value gradients
                    + q 4096 input
                    + k 2048 input
                    + v 2048 input
                    + out 4096 activation
                    + row_sums 256 activation
                on  + attention#1 16 activation
                on  + attention#2 8 activation
                    + gq 4096 gradient
                    + gk 2048 gradient
                    + gv 2048 gradient
                on  + attention#3 4096 workspace
                on  + attention#4 131072 workspace
                on  + attention#5 4096 workspace
                on  + attention#6 4096 workspace
                on  - attention#6
                on  - attention#5
                on  - attention#4
                on  - attention#3
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                on  - attention#1
                on  - attention#2
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "CPU flash, bfloat16 on Hopper: cuDNN",
            script: flash("bf16", 4, Layout::BatchFirst),
            target: on("h100-80g", 11),
            requests: expect![[r#"
                CPU flash, bfloat16 on Hopper: cuDNN
                    + q 4096 input
                    + k 4096 input
                    + v 4096 input
                    + out 4096 activation
                    + row_sums 256 activation
                on  + attention#1 8 activation
                on  + attention#2 8 activation
                    + gq 4096 gradient
                    + gk 4096 gradient
                    + gv 4096 gradient
                on  + attention#3 4096 workspace
                on  + attention#4 131072 workspace
                on  - attention#4
                on  - attention#3
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                on  - attention#1
                on  - attention#2
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "CPU flash, 32 bits, fewer key heads: CUDA takes the math path, left as it is",
            script: flash("f32", 2, Layout::BatchFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, 32 bits, fewer key heads: CUDA takes the math path, left as it is
                    + q 8192 input
                    + k 4096 input
                    + v 4096 input
                    + out 8192 activation
                    + row_sums 256 activation
                    + gq 8192 gradient
                    + gk 4096 gradient
                    + gv 4096 gradient
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "dropout: the CPU's math path gives way, query, key and value are kept instead",
            script: math(Inputs::Separate, Mask::None),
            target: target(),
            requests: expect![[r#"
                dropout: the CPU's math path gives way, query, key and value are kept instead
                on  + q 6400 input attention
                on  + k 6400 input attention
                on  + v 6400 input attention
                on  + out 6400 activation attention
                on  + attention#1 1024 activation
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#2 6400 workspace
                on  + attention#3 800 workspace
                on  + attention#4 800 workspace
                on  - attention#3
                on  - attention#2
                on  + attention#5 65600 workspace
                on  - attention#4
                on  - attention#5
                off + q 6400 input
                off + k 6400 input
                off + v 6400 input
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                    - q
                    - k
                on  - v
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#1
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "dropout and a boolean mask: kept as an additive one in the input's type",
            script: math(Inputs::Separate, Mask::Boolean),
            target: target(),
            requests: expect![[r#"
                dropout and a boolean mask: kept as an additive one in the input's type
                on  + q 6400 input attention
                on  + k 6400 input attention
                on  + v 6400 input attention
                off + q 6400 input
                off + k 6400 input
                off + v 6400 input
                    + mask 5000 input
                on  + attention#1 20000 activation
                on  + out 6400 activation attention
                on  + attention#2 1024 activation
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                    - mask
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#3 6400 workspace
                on  + attention#4 800 workspace
                on  + attention#5 800 workspace
                on  - attention#4
                on  - attention#3
                on  + attention#6 65600 workspace
                on  - attention#5
                on  - attention#6
                    - q
                    - k
                on  - v
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#2
                on  - attention#1
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "dropout and an additive mask: kept until backward",
            script: math(Inputs::Separate, Mask::Additive),
            target: target(),
            requests: expect![[r#"
                dropout and an additive mask: kept until backward
                on  + q 6400 input attention
                on  + k 6400 input attention
                on  + v 6400 input attention
                on  + mask 20000 input attention
                on  + out 6400 activation attention
                on  + attention#1 1024 activation
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#2 6400 workspace
                on  + attention#3 800 workspace
                on  + attention#4 800 workspace
                on  - attention#3
                on  - attention#2
                on  + attention#5 65600 workspace
                on  - attention#4
                on  - attention#5
                off + q 6400 input
                off + k 6400 input
                off + v 6400 input
                off + mask 20000 input
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                off - mask
                    - q
                    - k
                on  - v
                on  - mask
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#1
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "CPU flash, 32 bits, sequence first: copies on the way out and back in",
            script: flash("f32", 4, Layout::SequenceFirst),
            target: target(),
            requests: expect![[r#"
                CPU flash, 32 bits, sequence first: copies on the way out and back in
                    + q 8192 input
                    + k 8192 input
                    + v 8192 input
                    + out 8192 activation
                on  + row_sums 1024 activation attention
                on  + attention#1 8192 activation
                on  - attention#1
                off + row_sums 256 activation
                    + gq 8192 gradient
                    + gk 8192 gradient
                    + gv 8192 gradient
                on  + attention#2 8192 workspace
                on  + attention#3 8192 workspace
                on  + attention#4 256 workspace
                on  + attention#5 256 workspace
                on  - attention#4
                on  - attention#3
                on  + attention#6 131200 workspace
                on  - attention#5
                on  - attention#6
                on  - attention#2
                    - q
                    - k
                    - v
                    - out
                    - row_sums
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "dropout, query, key and value in one block: it is kept as a whole",
            script: math(Inputs::Packed, Mask::None),
            target: target(),
            requests: expect![[r#"
                dropout, query, key and value in one block: it is kept as a whole
                on  + qkv 19200 input attention
                on  + out 6400 activation attention
                on  + attention#1 1024 activation
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#2 6400 workspace
                on  + attention#3 800 workspace
                on  + attention#4 800 workspace
                on  - attention#3
                on  - attention#2
                on  + attention#5 65600 workspace
                on  - attention#4
                on  - attention#5
                on  - qkv
                off + qkv 19200 input
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#1
                off - qkv
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
            "#]],
        },
        Case {
            rule: RULE,
            shows: "dropout and a learned mask: its gradient comes for each batch entry and is summed",
            script: math(Inputs::Separate, Mask::Learned),
            target: target(),
            requests: expect![[r#"
                dropout and a learned mask: its gradient comes for each batch entry and is summed
                on  + q 6400 input attention
                on  + k 6400 input attention
                on  + v 6400 input attention
                off + q 6400 input
                off + k 6400 input
                off + v 6400 input
                    + mask 20000 input
                on  + out 6400 activation attention
                on  + attention#1 1024 activation
                on  + gy 6400 temporary attention
                on  + gv 6400 gradient attention
                on  + gk 6400 gradient attention
                on  + gq 6400 gradient attention
                on  + attention#2 40000 temporary
                on  + attention#3 6400 workspace
                on  + attention#4 800 workspace
                on  + attention#5 800 workspace
                on  - attention#4
                on  - attention#3
                on  + attention#6 65600 workspace
                on  - attention#5
                on  - attention#6
                on  + g_mask 20000 gradient attention
                on  - attention#2
                off + scaled_q 6400 activation
                off + scaled_k 6400 activation
                off + scores 40000 temporary
                off + cublas-workspace#1 8519680 workspace
                off + p 40000 activation
                off - scores
                off + noise 10000 activation dropout-mask
                off + dropped 40000 activation
                off + out 6400 temporary
                    - q
                    - k
                on  - v
                off + y 6400 activation
                    - out
                off + gy 6400 temporary
                off - y
                off + gv 6400 gradient
                off + cublas-workspace#2 8519680 workspace
                off + g_dropped 40000 temporary
                off - dropped
                    - gy
                on  - attention#1
                off - v
                off + g_p 40000 temporary
                off - noise
                off - g_dropped
                off + g_scores 40000 temporary
                off + softmax-backward#1 40000 workspace
                off - softmax-backward#1
                off - p
                off - g_p
                off + g_mask 20000 gradient
                off + g_scaled_q 6400 temporary
                off + g_scaled_k 6400 temporary
                off - scaled_q
                off - scaled_k
                off - g_scores
                off + gk 6400 gradient
                off - g_scaled_k
                off + gq 6400 gradient
                off - g_scaled_q
                    - gq
                    - gk
                    - gv
                    - mask
                    - g_mask
            "#]],
        },
    ]
}

/// How query, key and value lie in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    BatchFirst,
    SequenceFirst,
}

/// Batch 2, 4 query heads, 8 positions of width 32, without dropout: the CPU's flash kernel.
fn flash(dtype: &str, key_heads: u64, layout: Layout) -> Script {
    let strides = match layout {
        Layout::BatchFirst => "",
        Layout::SequenceFirst => ":128,32,256,1",
    };
    let query = format!("{dtype}[2,4,8,32]{strides}");
    let key = format!("{dtype}[2,{key_heads},8,32]{strides}");
    let bytes = if dtype == "f32" { 8192 } else { 4096 };
    let key_bytes = bytes / 4 * key_heads;
    let grouped = if key_heads == 4 { "False" } else { "True" };
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.makes_seq(1, "aten::mul", &query, "q", bytes);
        t.makes_seq(2, "aten::mul", &key, "k", key_bytes);
        t.makes_seq(3, "aten::mul", &key, "v", key_bytes);
        let arguments = format!("{query} {key} {key} - 0.0 True - {grouped}");
        t.op_seq(4, "aten::scaled_dot_product_attention", &arguments, |t| {
            let kernel = "aten::_scaled_dot_product_flash_attention_for_cpu";
            t.op_seq(4, kernel, &format!("{query} {key} {key} 0.0 True - -"), |t| {
                t.makes("aten::empty", "(2,8,4,32)", "out", bytes);
                t.makes("aten::empty", "(2,8,4)", "row_sums", 256);
                t.makes("aten::empty", "(2,4096)", "per_thread", 32_768);
                t.free("per_thread");
            });
        });
        t.node(4, "ScaledDotProductFlashAttentionForCpuBackward0", |t| {
            let kernel = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";
            t.op(kernel, &format!("{query} {query} {key} {key}"), |t| {
                t.alloc("gq", bytes);
                t.alloc("gk", key_bytes);
                t.alloc("gv", key_bytes);
            });
            t.free("q k v out row_sums");
        });
        t.free("gq gk gv");
    });
    t
}

/// Whether query, key and value are blocks of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inputs {
    Separate,
    Packed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mask {
    None,
    Boolean,
    Additive,
    /// Additive, the same for all of the batch, and with a gradient.
    Learned,
}

/// Batch 2, 2 heads, 50 positions of width 8, with dropout: the CPU's math path.
fn math(inputs: Inputs, mask: Mask) -> Script {
    let input = "f32[2,2,50,8]";
    let scores = "f32[2,2,50,50]";
    let (mask_argument, mask_bytes) = match mask {
        Mask::None => ("-", 0),
        Mask::Boolean => ("bool[2,1,50,50]", 5000),
        Mask::Additive => ("f32[2,1,50,50]", 20_000),
        Mask::Learned => ("f32[1,2,50,50]", 20_000),
    };
    let mut t = Script::default();
    t.iteration(0, |t| {
        match inputs {
            Inputs::Packed => t.makes_seq(1, "aten::add", "f32[2,50,48] f32[48] 1", "qkv", 19_200),
            Inputs::Separate => {
                for (sequence, name) in [(1, "q"), (2, "k"), (3, "v")] {
                    t.makes_seq(sequence, "aten::add", &format!("{input} {input} 1"), name, 6400);
                }
            }
        }
        if mask != Mask::None {
            t.makes("aten::ones", "(50,50)", "mask", mask_bytes);
        }
        let arguments = format!("{input} {input} {input} {mask_argument} 0.1 False - False");
        t.op_seq(4, "aten::scaled_dot_product_attention", &arguments, |t| {
            t.op_seq(4, "aten::_scaled_dot_product_attention_math", &arguments, |t| {
                t.makes_seq(4, "aten::mul", input, "scaled_q", 6400);
                t.makes_seq(5, "aten::mul", input, "scaled_k", 6400);
                t.makes_seq(6, "aten::bmm", "f32[4,50,8] f32[4,8,50]", "scores", 40_000);
                if mask != Mask::None {
                    t.op_seq(7, "aten::add_", &format!("{scores} {scores} 1"), |_| ());
                }
                t.makes_seq(8, "aten::_softmax", &format!("{scores} -1 False"), "p", 40_000);
                t.free("scores");
                t.op_seq(9, "aten::dropout", &format!("{scores} 0.1 True"), |t| {
                    t.makes("aten::empty_like", scores, "noise", 40_000);
                    t.makes_seq(9, "aten::mul", &format!("{scores} {scores}"), "dropped", 40_000);
                });
                t.makes_seq(10, "aten::bmm", "f32[4,50,50] f32[4,50,8]", "out", 6400);
            });
        });
        if matches!(mask, Mask::Boolean | Mask::Additive) {
            t.free("mask");
        }
        // The copies have been scaled, the value is still read by the second product's backward.
        if inputs == Inputs::Separate {
            t.free("q k");
        }
        t.op_seq(11, "aten::clone", &format!("{input} 0"), |t| t.alloc("y", 6400));
        t.free("out");
        t.node(11, "CloneBackward0", |t| t.alloc("gy", 6400));
        t.free("y");
        t.node(10, "BmmBackward0", |t| {
            t.makes("aten::bmm", "f32[4,50,50] f32[4,50,8]", "gv", 6400);
            t.makes("aten::bmm", "f32[4,50,8] f32[4,8,50]", "g_dropped", 40_000);
            t.free("dropped gy");
            t.free(if inputs == Inputs::Packed { "qkv" } else { "v" });
        });
        t.node(9, "MulBackward0", |t| {
            t.makes("aten::mul", &format!("{scores} {scores}"), "g_p", 40_000);
            t.free("noise g_dropped");
        });
        t.node(8, "SoftmaxBackward0", |t| {
            let arguments = format!("{scores} {scores} -1 6");
            t.makes("aten::_softmax_backward_data", &arguments, "g_scores", 40_000);
            t.free("p g_p");
        });
        if mask == Mask::Learned {
            t.node(7, "AddBackward0", |t| {
                t.makes("aten::sum", &format!("{scores} (0) True -"), "g_mask", 20_000);
            });
        }
        t.node(6, "BmmBackward0", |t| {
            t.makes("aten::bmm", "f32[4,50,50] f32[4,50,8]", "g_scaled_q", 6400);
            t.makes("aten::bmm", "f32[4,8,50] f32[4,50,50]", "g_scaled_k", 6400);
            t.free("scaled_q scaled_k g_scores");
        });
        t.node(5, "MulBackward0", |t| {
            t.makes("aten::mul", input, "gk", 6400);
            t.free("g_scaled_k");
        });
        t.node(4, "MulBackward0", |t| {
            t.makes("aten::mul", input, "gq", 6400);
            t.free("g_scaled_q");
        });
        t.free("gq gk gv");
        if mask == Mask::Learned {
            t.free("mask g_mask");
        }
    });
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
