//! Traces of one attention call each, forward and backward.

use crate::testing::Script;

/// The layout of query, key and value in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    BatchFirst,
    SequenceFirst,
}

/// Batch 2, 4 query heads, 8 positions of width 32, without dropout: the CPU's flash kernel.
pub(crate) fn flash(dtype: &str, key_heads: u64, layout: Layout) -> Script {
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

/// One head, 3 queries of 5 keys, width 8, a boolean mask that the CPU makes additive.
pub(crate) fn masked_flash() -> Script {
    let (query, key) = ("f32[1,1,3,8]", "f32[1,1,5,8]");
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.makes_seq(1, "aten::mul", query, "q", 96);
        t.makes_seq(2, "aten::mul", key, "k", 160);
        t.makes_seq(3, "aten::mul", key, "v", 160);
        let arguments = format!("{query} {key} {key} bool[1,1,3,5] 0.0 False - False");
        t.op_seq(4, "aten::scaled_dot_product_attention", &arguments, |t| {
            t.makes("aten::where", "bool[1,1,3,5] f32[] f32[]", "mask", 60);
            let kernel = "aten::_scaled_dot_product_flash_attention_for_cpu";
            t.op_seq(4, kernel, &format!("{query} {key} {key} 0.0 False f32[1,1,3,5] -"), |t| {
                t.makes("aten::empty", "(1,3,1,8)", "out", 96);
                t.makes("aten::empty", "(1,3,1)", "row_sums", 12);
            });
        });
        t.node(4, "ScaledDotProductFlashAttentionForCpuBackward0", |t| {
            let kernel = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";
            t.op(kernel, &format!("{query} {query} {key} {key}"), |t| {
                t.alloc("gq", 96);
                t.alloc("gk", 160);
                t.alloc("gv", 160);
            });
            t.free("q k v mask out row_sums");
        });
        t.free("gq gk gv");
    });
    t
}

/// One head, 4 positions of width 160 and 16 bits.
pub(crate) fn wide_flash() -> Script {
    let input = "f16[1,1,4,160]";
    let mut t = Script::default();
    t.iteration(0, |t| {
        for (sequence, name) in [(1, "q"), (2, "k"), (3, "v")] {
            t.makes_seq(sequence, "aten::mul", input, name, 1280);
        }
        let arguments = format!("{input} {input} {input} - 0.0 True - False");
        t.op_seq(4, "aten::scaled_dot_product_attention", &arguments, |t| {
            let kernel = "aten::_scaled_dot_product_flash_attention_for_cpu";
            t.op_seq(4, kernel, &format!("{input} {input} {input} 0.0 True - -"), |t| {
                t.makes("aten::empty", "(1,4,1,160)", "out", 1280);
                t.makes("aten::empty", "(1,4,1)", "row_sums", 16);
            });
        });
        t.node(4, "ScaledDotProductFlashAttentionForCpuBackward0", |t| {
            let kernel = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";
            t.op(kernel, &format!("{input} {input} {input} {input}"), |t| {
                for name in ["gq", "gk", "gv"] {
                    t.alloc(name, 1280);
                }
            });
            t.free("q k v out row_sums");
        });
        t.free("gq gk gv");
    });
    t
}

/// The blocks of query, key and value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inputs {
    Separate,
    Packed,
    /// The query is a part of a layer's output; key and value are copies, as of a cache.
    PackedQuery,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mask {
    None,
    Boolean,
    Additive,
    /// Additive, the same for all of the batch, and with a gradient.
    Learned,
}

/// Batch 2, 2 heads, 50 positions of width 8, with dropout: the CPU's math path.
pub(crate) fn math(inputs: Inputs, mask: Mask) -> Script {
    let input = "f32[2,2,50,8]";
    let query = match inputs {
        Inputs::PackedQuery => "f32[2,2,50,8]:2400,8,48,1",
        Inputs::Separate | Inputs::Packed => input,
    };
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
            Inputs::Packed | Inputs::PackedQuery => {
                t.makes_seq(1, "aten::add", "f32[2,50,48] f32[48] 1", "qkv", 19_200);
                if inputs == Inputs::PackedQuery {
                    t.makes_seq(2, "aten::cat", "{2,2,50,8} -2", "k", 6400);
                    t.makes_seq(3, "aten::cat", "{2,2,50,8} -2", "v", 6400);
                }
            }
            Inputs::Separate => {
                for (sequence, name) in [(1, "q"), (2, "k"), (3, "v")] {
                    t.makes_seq(sequence, "aten::add", &format!("{input} {input} 1"), name, 6400);
                }
            }
        }
        if mask != Mask::None {
            t.makes("aten::ones", "(50,50)", "mask", mask_bytes);
        }
        let arguments = format!("{query} {input} {input} {mask_argument} 0.1 False - False");
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
        match inputs {
            Inputs::Separate => t.free("q k"),
            Inputs::PackedQuery => t.free("qkv k"),
            Inputs::Packed => {}
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

/// Batch 2, 2 heads, 50 positions of width 8, with dropout, in a checkpointed segment that ends with a
/// layer: the first run keeps nothing; the first node that asks for a tensor runs the segment again.
pub(crate) fn checkpointed() -> Script {
    let (input, scores) = ("f32[2,2,50,8]", "f32[2,2,50,50]");
    let mut t = Script::default();
    t.iteration(0, |t| {
        segment(t, 0, "h");
        t.free("q k v scaled_q scaled_k p noise dropped out");
        t.node(11, "MmBackward0", |t| {
            segment(t, 20, "again");
            t.free("q k again");
            t.makes("aten::mm", "f32[100,16] f32[16,16]", "gy", 6400);
            t.free("out h");
        });
        t.node(10, "BmmBackward0", |t| {
            t.makes("aten::bmm", "f32[4,50,50] f32[4,50,8]", "gv", 6400);
            t.makes("aten::bmm", "f32[4,50,8] f32[4,8,50]", "g_dropped", 40_000);
            t.free("dropped gy v");
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
    });
    t
}

/// Query, key and value, attention and a layer, with sequence numbers after `first`.
fn segment(t: &mut Script, first: u32, result: &str) {
    let (input, scores) = ("f32[2,2,50,8]", "f32[2,2,50,50]");
    for (sequence, name) in [(1, "q"), (2, "k"), (3, "v")] {
        t.makes_seq(first + sequence, "aten::add", &format!("{input} {input} 1"), name, 6400);
    }
    let arguments = format!("{input} {input} {input} - 0.1 False - False");
    t.op_seq(first + 4, "aten::scaled_dot_product_attention", &arguments, |t| {
        t.op_seq(first + 4, "aten::_scaled_dot_product_attention_math", &arguments, |t| {
            t.makes_seq(first + 4, "aten::mul", input, "scaled_q", 6400);
            t.makes_seq(first + 5, "aten::mul", input, "scaled_k", 6400);
            t.makes_seq(first + 6, "aten::bmm", "f32[4,50,8] f32[4,8,50]", "scores", 40_000);
            t.makes_seq(first + 8, "aten::_softmax", &format!("{scores} -1 False"), "p", 40_000);
            t.free("scores");
            t.op_seq(first + 9, "aten::dropout", &format!("{scores} 0.1 True"), |t| {
                t.makes("aten::empty_like", scores, "noise", 40_000);
                let product = format!("{scores} {scores}");
                t.makes_seq(first + 9, "aten::mul", &product, "dropped", 40_000);
            });
            t.makes_seq(first + 10, "aten::bmm", "f32[4,50,50] f32[4,50,8]", "out", 6400);
        });
    });
    t.makes_seq(first + 11, "aten::mm", "f32[100,16] f32[16,16]", result, 6400);
}
