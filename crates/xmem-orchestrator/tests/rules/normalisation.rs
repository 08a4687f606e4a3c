//! Normalisation layers: sizes as recorded with PyTorch 2.11's CUDA build, kernels stubbed.

use crate::support::{Case, Script, check, target};
use expect_test::expect;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: "batch-norm",
            shows: "cuDNN: the input's gradient first",
            script: batch_norm("f32[8,24,40,36]", 1_105_920, 96),
            target: target(),
            requests: expect![[r#"
                cuDNN: the input's gradient first
                    + y 1105920 activation
                off + gw 96 gradient
                off + gb 96 gradient
                    + gx 1105920 gradient
                on  + gw 96 gradient batch-norm
                on  + gb 96 gradient batch-norm
                    - y
                    - gx
                    - gw
                    - gb
            "#]],
        },
        Case {
            rule: "batch-norm",
            shows: "channels innermost, 512 rows: sums in scratch, the input's gradient last",
            script: batch_norm("f32[512,200]", 409_600, 800),
            target: target(),
            requests: expect![[r#"
                channels innermost, 512 rows: sums in scratch, the input's gradient last
                    + y 409600 activation
                on  + batch-norm#1 800 workspace
                on  + batch-norm#2 800 workspace
                    + gw 800 gradient
                    + gb 800 gradient
                    + gx 409600 gradient
                on  - batch-norm#2
                on  - batch-norm#1
                    - y
                    - gx
                    - gw
                    - gb
            "#]],
        },
        Case {
            rule: "batch-norm",
            shows: "channels innermost, 8192 rows: staging buffers as well",
            script: batch_norm("f32[8192,200]", 6_553_600, 800),
            target: target(),
            requests: expect![[r#"
                channels innermost, 8192 rows: staging buffers as well
                    + y 6553600 activation
                on  + batch-norm#1 800 workspace
                on  + batch-norm#2 800 workspace
                    + gw 800 gradient
                    + gb 800 gradient
                on  + batch-norm#3 51200 workspace
                on  + batch-norm#4 28 workspace
                on  - batch-norm#4
                on  - batch-norm#3
                    + gx 6553600 gradient
                on  - batch-norm#2
                on  - batch-norm#1
                    - y
                    - gx
                    - gw
                    - gb
            "#]],
        },
        Case {
            rule: "group-norm",
            shows: "scale and shift forward; sums and factors backward",
            script: group_norm(),
            target: target(),
            requests: expect![[r#"
                scale and shift forward; sums and factors backward
                    + y 1105920 activation
                    + mean 128 activation
                    + rstd 128 activation
                on  + group-norm#1 768 workspace
                on  + group-norm#2 768 workspace
                on  - group-norm#2
                on  - group-norm#1
                    + gx 1105920 gradient
                    + gw 96 gradient
                    + gb 96 gradient
                on  + group-norm#3 768 workspace
                on  + group-norm#4 768 workspace
                on  + group-norm#5 128 workspace
                on  + group-norm#6 128 workspace
                on  + group-norm#7 768 workspace
                on  - group-norm#7
                on  - group-norm#6
                on  - group-norm#5
                on  - group-norm#4
                on  - group-norm#3
                    - y
                    - mean
                    - rstd
                    - gx
                    - gw
                    - gb
            "#]],
        },
        Case {
            rule: "layer-norm-statistics",
            shows: "bfloat16: mean and deviation of 32 bits",
            script: layer_norm("bf16[32,128,256]", 2_097_152, 8192),
            target: target(),
            requests: expect![[r#"
                bfloat16: mean and deviation of 32 bits
                    + y 2097152 activation
                on  + mean 16384 activation layer-norm-statistics
                on  + rstd 16384 activation layer-norm-statistics
                off + mean 8192 activation
                off + rstd 8192 activation
                    - y
                    - mean
                    - rstd
            "#]],
        },
        Case {
            rule: "layer-norm-statistics",
            shows: "float32: as on the CPU",
            script: layer_norm("f32[32,128,256]", 4_194_304, 16384),
            target: target(),
            requests: expect![[r#"
                float32: as on the CPU
                    + y 4194304 activation
                    + mean 16384 activation
                    + rstd 16384 activation
                    - y
                    - mean
                    - rstd
            "#]],
        },
        Case {
            rule: "rms-norm",
            shows: "output and one number a row; backward the two gradients",
            script: rms_norm(Gradient::Passed),
            target: target(),
            requests: expect![[r#"
                output and one number a row; backward the two gradients
                off + square 4194304 temporary
                off + mean 16384 temporary
                off + reduction-buffer#1 336 workspace
                off + reduction-buffer#2 4 workspace
                off - reduction-buffer#1
                off - reduction-buffer#2
                off - square
                off + rstd 16384 activation
                off - mean
                off + normal 4194304 activation
                    + y 4194304 activation
                on  + rstd 16384 activation rms-norm
                on  + gx 4194304 gradient rms-norm
                on  + gw 1024 gradient rms-norm
                off + g1 4194304 temporary
                off + g2 4194304 temporary
                off + gw 1024 gradient
                off + reduction-buffer#3 8388608 workspace
                off + reduction-buffer#4 8 workspace
                off - reduction-buffer#3
                off - reduction-buffer#4
                off - g2
                off - normal
                off + g3 4194304 temporary
                off + g4 16384 temporary
                off - g1
                    - rstd
                off + gx 4194304 gradient
                off - g3
                off - g4
                    - gx
                    - gw
                    - y
            "#]],
        },
        Case {
            rule: "rms-norm",
            shows: "beside a residual connection: the kernel's gradient is added into the other",
            script: rms_norm(Gradient::Added),
            target: target(),
            requests: expect![[r#"
                beside a residual connection: the kernel's gradient is added into the other
                off + square 4194304 temporary
                off + mean 16384 temporary
                off + reduction-buffer#1 336 workspace
                off + reduction-buffer#2 4 workspace
                off - reduction-buffer#1
                off - reduction-buffer#2
                off - square
                off + rstd 16384 activation
                off - mean
                off + normal 4194304 activation
                    + y 4194304 activation
                on  + rstd 16384 activation rms-norm
                on  + rms-norm#1 4194304 temporary
                on  + gw 1024 gradient rms-norm
                on  - rms-norm#1
                off + g1 4194304 temporary
                off + g2 4194304 temporary
                off + gw 1024 gradient
                off + reduction-buffer#3 8388608 workspace
                off + reduction-buffer#4 8 workspace
                off - reduction-buffer#3
                off - reduction-buffer#4
                off - g2
                off - normal
                off + g3 4194304 temporary
                off + g4 16384 temporary
                off - g1
                    - rstd
                off + gx 4194304 temporary
                off - g3
                off - g4
                off - gx
                    - gw
                    - y
            "#]],
        },
        Case {
            rule: "rms-norm",
            shows: "without autograd: the number a row goes at once",
            script: rms_norm_without_autograd(),
            target: target(),
            requests: expect![[r#"
                without autograd: the number a row goes at once
                    + y 4194304 input
                on  + rms-norm#1 16384 temporary
                on  - rms-norm#1
                    + z 4194304 activation
                    - y
                    - z
            "#]],
        },
    ]
}

fn batch_norm(input: &str, bytes: u64, channels: u64) -> Script {
    let mut t = Script::default();
    let per_channel = format!("f32[{}]", channels / 4);
    t.iteration(0, |t| {
        t.makes_seq(1, "aten::native_batch_norm", input, "y", bytes);
        t.node(1, "NativeBatchNormBackward0", |t| {
            let c = &per_channel;
            let arguments = format!("{input} {input} {c} {c} {c} {c} {c} True 1e-5 (1,1,1)");
            t.op("aten::native_batch_norm_backward", &arguments, |t| {
                t.alloc("gw", channels);
                t.alloc("gb", channels);
                t.alloc("gx", bytes);
                t.alloc("rows", channels);
                t.free("rows");
            });
            t.free("y");
        });
        t.free("gx gw gb");
    });
    t
}

fn group_norm() -> Script {
    let mut t = Script::default();
    let x = "f32[8,24,40,36]";
    t.iteration(0, |t| {
        let arguments = format!("{x} f32[24] f32[24] 8 24 1440 4 1e-5");
        t.op_seq(1, "aten::native_group_norm", &arguments, |t| {
            t.alloc("y", 1_105_920);
            t.alloc("mean", 128);
            t.alloc("rstd", 128);
        });
        t.node(1, "NativeGroupNormBackward0", |t| {
            let arguments = format!("{x} {x} f32[8,4] f32[8,4] f32[24] 8 24 1440 4 (1,1,1)");
            t.op("aten::native_group_norm_backward", &arguments, |t| {
                t.alloc("gx", 1_105_920);
                t.alloc("gw", 96);
                t.alloc("gb", 96);
            });
            t.free("y mean rstd");
        });
        t.free("gx gw gb");
    });
    t
}

fn layer_norm(input: &str, bytes: u64, rows: u64) -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        let arguments = format!("{input} (256) bf16[256] bf16[256] 1e-5");
        t.op_seq(1, "aten::native_layer_norm", &arguments, |t| {
            t.alloc("y", bytes);
            t.alloc("mean", rows);
            t.alloc("rstd", rows);
        });
        t.node(1, "NativeLayerNormBackward0", |_| ());
        t.free("y mean rstd");
    });
    t
}

/// What becomes of the input's gradient.
#[derive(PartialEq, Eq)]
enum Gradient {
    /// It goes on to the operator before.
    Passed,
    /// The engine adds it into the gradient that came around the layer.
    Added,
}

/// The chain of operators that the CPU runs, and its backward.
fn rms_norm(gradient: Gradient) -> Script {
    let mut t = Script::default();
    let (x, bytes) = ("f32[32,128,256]", 4_194_304);
    t.iteration(0, |t| {
        t.op("aten::_fused_rms_norm", &format!("{x} (256) f32[256] -"), |t| {
            t.makes_seq(1, "aten::pow", x, "square", bytes);
            t.makes_seq(2, "aten::mean", x, "mean", 16384);
            t.free("square");
            t.makes_seq(3, "aten::rsqrt", "f32[32,128,1]", "rstd", 16384);
            t.free("mean");
            t.makes_seq(4, "aten::mul", x, "normal", bytes);
            t.makes_seq(5, "aten::mul", x, "y", bytes);
        });
        t.node(5, "MulBackward0", |t| {
            t.makes("aten::mul", x, "g1", bytes);
            t.makes("aten::mul", x, "g2", bytes);
            t.makes("aten::sum", &format!("{x} (0,1) False -"), "gw", 1024);
            t.free("g2 normal");
        });
        t.node(4, "MulBackward0", |t| {
            t.makes("aten::mul", x, "g3", bytes);
            t.makes("aten::sum", &format!("{x} (2) True -"), "g4", 16384);
            t.free("g1 rstd");
        });
        t.node(1, "PowBackward0", |t| {
            t.makes("aten::mul", x, "gx", bytes);
            t.free("g3 g4");
            if gradient == Gradient::Added {
                t.free("gx");
            }
        });
        if gradient == Gradient::Passed {
            t.free("gx");
        }
        t.free("gw y");
    });
    t
}

fn rms_norm_without_autograd() -> Script {
    let mut t = Script::default();
    let (x, bytes) = ("f32[32,128,256]", 4_194_304);
    t.iteration(0, |t| {
        t.op("aten::_fused_rms_norm", &format!("{x} (256) f32[256] -"), |t| {
            t.makes("aten::pow", x, "square", bytes);
            t.makes("aten::rsqrt", "f32[32,128,1]", "rstd", 16384);
            t.free("square");
            t.makes("aten::mul", x, "y", bytes);
            t.free("rstd");
        });
        t.makes_seq(1, "aten::mul", x, "z", bytes);
        t.node(1, "MulBackward0", |_| ());
        t.free("y z");
    });
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
