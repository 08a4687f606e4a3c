//! A small training job: one weight `w` of 32 x 32 floats, one bias `b` of 32, optimizers as the
//! CPU runs them.

use super::Script;

/// The place at which the job clears its gradients.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clear {
    IterationStart,
    BeforeBackward,
}

/// The beginning of the recording.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Before the model is made.
    Model,
    /// After some iterations.
    Later,
}

/// The job's parameters: name, shape, bytes.
pub(crate) const PARAMETERS: [(&str, &str, u64); 2] =
    [("w", "f32[32,32]", 4096), ("b", "f32[32]", 128)];

/// A whole recording. `step` is what `Optimizer.step#CLASS.step` does in the given iteration.
pub(crate) fn train(
    begin: Begin,
    iterations: u32,
    class: &str,
    clear: Clear,
    step: impl Fn(&mut Script, u32),
) -> Script {
    let mut t = Script::default();
    if begin == Begin::Model {
        t.parameter("w", &[32, 32]);
        t.parameter("b", &[32]);
    }
    for i in 0..iterations {
        t.iteration(i, |t| iteration(t, i, class, clear, &step));
    }
    t
}

fn iteration(t: &mut Script, i: u32, class: &str, clear: Clear, step: &impl Fn(&mut Script, u32)) {
    if clear == Clear::IterationStart {
        zero_grad(t, i, class);
    }
    let x = format!("x{i}");
    t.makes("aten::randn", "(8,32)", &x, 1024);
    if i > 0 {
        t.free(&format!("x{}", i - 1));
    }
    let sequence = 3 * i + 1;
    t.makes_seq(sequence, "aten::mul", "f32[8,32] f32[32,32]", "h", 1024);
    t.makes_seq(sequence + 1, "aten::add", "f32[8,32] f32[32] 1", "y", 1024);
    t.free("h");
    t.makes_seq(sequence + 2, "aten::mse_loss", "f32[8,32] f32[8,32] 1", "loss", 4);
    if clear == Clear::BeforeBackward {
        zero_grad(t, i, class);
    }
    t.makes("aten::ones_like", "f32[] - - - False 1", "seed", 4);
    t.node(sequence + 2, "MseLossBackward0", |t| {
        t.makes("aten::mse_loss_backward", "f32[] f32[8,32] f32[8,32] 1", "gy", 1024);
        t.free("y");
    });
    t.node(sequence + 1, "AddBackward0", |t| {
        t.makes("aten::sum", "f32[8,32] (0) False -", &format!("gb{i}"), 128);
    });
    t.accumulate("f32[32]");
    t.node(sequence, "MulBackward0", |t| {
        t.makes("aten::mul", "f32[8,32] f32[8,32]", &format!("gw{i}"), 4096);
        t.free("gy");
    });
    t.accumulate("f32[32,32]");
    t.free("seed loss");
    t.mark(&format!("Optimizer.step#{class}.step"), |t| step(t, i));
}

fn zero_grad(t: &mut Script, i: u32, class: &str) {
    t.mark(&format!("Optimizer.zero_grad#{class}.zero_grad"), |t| {
        if i > 0 {
            t.free(&format!("gw{0} gb{0}", i - 1));
        }
    });
}

/// Adam (torch/optim/adam.py, `_single_tensor_adam`): state for all parameters in the first
/// iteration, then parameter by parameter.
pub(crate) fn adam(t: &mut Script, i: u32) {
    adam_after(t, i, &[]);
}

/// Adam, where operators copy each gradient first.
pub(crate) fn adam_after(t: &mut Script, i: u32, copies: &[&str]) {
    if i == 0 {
        for (name, shape, bytes) in PARAMETERS {
            t.counter(&format!("{name}.step"));
            t.makes("aten::zeros_like", shape, &format!("{name}.exp_avg"), bytes);
            t.makes("aten::zeros_like", shape, &format!("{name}.exp_avg_sq"), bytes);
        }
    }
    for (_, shape, bytes) in PARAMETERS {
        for copy in copies {
            t.makes(copy, &format!("{shape} {shape} 1"), copy, bytes);
        }
        t.op("aten::lerp_", &format!("{shape} {shape} 0.1"), |_| ());
        t.op("aten::mul_", &format!("{shape} 0.999"), |_| ());
        t.op("aten::addcmul_", &format!("{shape} {shape} {shape} 0.001"), |_| ());
        t.makes("aten::sqrt", shape, "sqrt", bytes);
        t.makes("aten::div", &format!("{shape} 0.03"), "denom", bytes);
        t.free("sqrt");
        t.op("aten::add_", &format!("{shape} 1e-8 1"), |_| ());
        t.op("aten::addcdiv_", &format!("{shape} {shape} {shape} -0.01"), |_| ());
        t.free("denom");
        t.free(&copies.join(" "));
    }
}
