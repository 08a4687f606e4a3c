//! What is host memory, what is scratch of CPU kernels, and where the model goes to the GPU.

use crate::support::job::{Begin, Clear, adam, train};
use crate::support::{Case, Script, check, target};
use expect_test::expect;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            rule: "host-only",
            shows: "a random initialisation, data that stays on the host, a step counter",
            script: host_memory(),
            target: target(),
            requests: expect![[r#"
                a random initialisation, data that stays on the host, a step counter
                off + noise 4096 temporary
                    + w 4096 parameter model-placement
                off - noise
                off + sampled 512 temporary
                    + x0 8192 input
                off - sampled
                    + y 8192 activation
                    + seed 4 temporary
                    + gw0 4096 gradient
                    - y
                    - seed
                    - x0
                off + step 4 optimizer_state
                    - gw0
                off + sampled 512 temporary
                    + x1 8192 input
                off - sampled
                    + y 8192 activation
                    + seed 4 temporary
                    + gw1 4096 gradient
                    - y
                    - seed
                    - x1
                    - gw1
            "#]],
        },
        Case {
            rule: "host-scalars",
            shows: "a Python number that a product takes",
            script: wrapped_number(),
            target: target(),
            requests: expect![[r#"
                a Python number that a product takes
                off + number 4 temporary
                    + y 8192 activation
                off - number
                    + gx 8192 gradient
                    - y
                    - gx
            "#]],
        },
        Case {
            rule: "leaf-scratch",
            shows: "a kernel's scratch goes, its outputs stay; what a factory makes is its caller's",
            script: scratch(),
            target: target(),
            requests: expect![[r#"
                a kernel's scratch goes, its outputs stay; what a factory makes is its caller's
                    + y 8192 activation
                    + mean 256 activation
                    + rstd 256 activation
                    + dx 8192 gradient
                off + partial_sums 512 temporary
                    + dgamma 128 gradient
                off - partial_sums
                    - y
                    - mean
                    - rstd
                    - dx
                    - dgamma
            "#]],
        },
        Case {
            rule: "model-placement",
            shows: "a batch that was made between two parameters comes before both",
            script: interleaved_model(),
            target: target(),
            requests: expect![[r#"
                a batch that was made between two parameters comes before both
                off + w 4096 parameter
                    + x 8192 input
                on  + w 4096 parameter model-placement
                on  + b 128 parameter model-placement
                off + b 128 parameter
                    + h 8192 temporary
                    + y 8192 activation
                    - h
                    + seed 4 temporary
                    + gb 128 gradient
                    + gw 4096 gradient
                    - y
                    - seed
                    - gw
                    - gb
                    + h 8192 temporary
                    + y 8192 activation
                    - h
                    + seed 4 temporary
                    + gb 128 gradient
                    + gw 4096 gradient
                    - y
                    - seed
                    - gw
                    - gb
            "#]],
        },
        Case {
            rule: "preexisting",
            shows: "the recording starts late: parameters and Adam's state are put in",
            script: train(Begin::Later, 2, "Adam", Clear::IterationStart, |t, _| adam(t, 1)),
            target: target(),
            requests: expect![[r#"
                the recording starts late: parameters and Adam's state are put in
                on  + preexisting#1 4096 parameter
                on  + preexisting#2 128 parameter
                on  + preexisting#3 4096 optimizer_state
                on  + preexisting#4 4096 optimizer_state
                on  + preexisting#5 128 optimizer_state
                on  + preexisting#6 128 optimizer_state
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
                    + optimizer-step#1 4096 temporary
                    + optimizer-step#2 128 temporary
                    - optimizer-step#2
                    - optimizer-step#1
                    - gw0
                    - gb0
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
                    + gb1 128 gradient
                    + gw1 4096 gradient
                    - gy
                    - seed
                    - loss
                    + optimizer-step#3 4096 temporary
                    + optimizer-step#4 128 temporary
                    - optimizer-step#4
                    - optimizer-step#3
            "#]],
        },
        Case {
            rule: "preexisting",
            shows: "the recording starts with the model: nothing is put in",
            script: train(Begin::Model, 1, "Adam", Clear::IterationStart, adam),
            target: target(),
            requests: expect![[r#"
                the recording starts with the model: nothing is put in
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

fn host_memory() -> Script {
    let mut t = Script::default();
    t.makes("aten::randn", "(32,32)", "noise", 4096);
    t.parameter("w", &[32, 32]);
    t.free("noise");
    for i in 0..2 {
        t.iteration(i, |t| {
            t.makes("aten::randint", "0 10 (64) - - - False", "sampled", 512);
            t.makes("aten::index", "f32[1000,32] -", &format!("x{i}"), 8192);
            t.free("sampled");
            t.makes_seq(i, "aten::mul", "f32[64,32] f32[32,32]", "y", 8192);
            t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
            t.node(i, "MulBackward0", |t| {
                t.makes("aten::mul", "f32[64,32] f32[64,32]", &format!("gw{i}"), 4096);
            });
            t.accumulate("f32[32,32]");
            t.free(&format!("y seed x{i}"));
            t.mark("Optimizer.step#SGD.step", |t| {
                if i == 0 {
                    t.counter("step");
                }
                t.op("aten::add_", "f32[32,32] f32[32,32] -0.1", |_| ());
            });
            t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| t.free(&format!("gw{i}")));
        });
    }
    t
}

/// `y = x * 0.5`: the number becomes a double, then the input's type.
fn wrapped_number() -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.op_seq(1, "aten::mul", "f32[64,32] 0.5", |t| {
            t.op("aten::mul", "f32[64,32] f64[]", |t| {
                t.op("aten::to", "f64[] 6 False False -", |t| {
                    t.op("aten::_to_copy", "f64[] 6 - - - False -", |t| {
                        t.makes("aten::empty_strided", "() () 6 0 - False", "number", 4);
                    });
                });
                t.alloc("y", 8192);
                t.free("number");
            });
        });
        t.node(1, "MulBackward0", |t| {
            t.makes("aten::mul", "f32[64,32] f32[]", "gx", 8192);
            t.free("y");
        });
        t.free("gx");
    });
    t
}

fn scratch() -> Script {
    let mut t = Script::default();
    t.iteration(0, |t| {
        t.op_seq(1, "aten::layer_norm", "f32[64,32] (32) f32[32] f32[32] 1e-05 True", |t| {
            t.op_seq(1, "aten::native_layer_norm", "f32[64,32] (32) f32[32] f32[32] 1e-05", |t| {
                t.makes("aten::empty", "(64,32)", "y", 8192);
                t.makes("aten::empty", "(64)", "mean", 256);
                t.makes("aten::empty", "(64)", "rstd", 256);
            });
        });
        t.node(1, "NativeLayerNormBackward0", |t| {
            t.op("aten::native_layer_norm_backward", "f32[64,32] f32[64,32] (32)", |t| {
                t.makes("aten::empty", "(64,32)", "dx", 8192);
                t.op("aten::zeros", "(4,32)", |t| {
                    t.makes("aten::empty", "(4,32)", "partial_sums", 512);
                });
                t.alloc("dgamma", 128);
                t.free("partial_sums");
            });
            t.free("y mean rstd");
        });
        t.free("dx dgamma");
    });
    t
}

fn interleaved_model() -> Script {
    let mut t = Script::default();
    t.python("train.py(3): main", |t| {
        t.parameter("w", &[32, 32]);
        t.makes("aten::ones", "(64,32)", "x", 8192);
        t.parameter("b", &[32]);
    });
    for i in 0..2 {
        t.iteration(i, |t| {
            t.makes_seq(2 * i, "aten::mul", "f32[64,32] f32[32,32]", "h", 8192);
            t.makes_seq(2 * i + 1, "aten::add", "f32[64,32] f32[32] 1", "y", 8192);
            t.free("h");
            t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
            t.node(2 * i + 1, "AddBackward0", |t| t.alloc("gb", 128));
            t.accumulate("f32[32]");
            t.node(2 * i, "MulBackward0", |t| t.alloc("gw", 4096));
            t.accumulate("f32[32,32]");
            t.free("y seed");
            t.mark("Optimizer.step#SGD.step", |t| {
                t.op("aten::add_", "f32[32,32] f32[32,32] -0.1", |_| ());
                t.op("aten::add_", "f32[32] f32[32] -0.1", |_| ());
            });
            t.mark("Optimizer.zero_grad#SGD.zero_grad", |t| t.free("gw gb"));
        });
    }
    t
}

#[test]
fn schedules_are_as_expected() {
    check(cases());
}
