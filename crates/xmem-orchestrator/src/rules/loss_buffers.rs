//! Losses that are one operator. `mse_loss` and `smooth_l1_loss`, reduced, hold the losses of all elements in
//! a separate block, summed by one kernel; `_ctc_loss` holds its lengths and, in backward, `log_beta`;
//! `log_sigmoid_forward` keeps no buffer, since CUDA computes `exp(-|x|)` again in backward.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::cuda::reduce::{self, Parallelism};
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;
use xmem_analyzer::TensorArg;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "loss-buffers",
        summary: "mse_loss and smooth_l1_loss hold the losses of all elements, ctc_loss its lengths and log_beta; log_sigmoid keeps no buffer",
        source: "aten/src/ATen/native/cuda/LossCTC.cu; aten/src/ATen/native/Activation.cpp `log_sigmoid_forward_cuda`; aten/src/ATen/native/Loss.cpp `mse_loss_out`, `smooth_l1_loss_out`",
        operators: &[
            "aten::_ctc_loss",
            "aten::_ctc_loss_backward",
            "aten::log_sigmoid_forward",
            "aten::mse_loss",
            "aten::smooth_l1_loss",
        ],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    Outcome::of_innermost(call, |call| match call.name() {
        "aten::_ctc_loss" => ctc(call),
        "aten::_ctc_loss_backward" => ctc_backward(call),
        "aten::log_sigmoid_forward" => log_sigmoid(call),
        _ => reduced(call),
    })
}

/// `mse_loss` and `smooth_l1_loss(self, target, reduction, …)`, reduced (aten/src/ATen/native/Loss.cpp,
/// `mse_loss_out`, `smooth_l1_loss_out`). The result keeps the size of the inputs, on both devices.
fn reduced(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let input = arguments.tensor(0)?;
    let target_size = arguments.tensor(1).map_or(Count(0), Count::elements);
    if arguments.value(2) == Some("0") || Count::elements(input) < target_size {
        return None;
    }
    let losses = TensorArg { strides: Vec::new(), ..input.clone() };
    let all = vec![true; input.dims.len()];
    let buffers = reduce::buffers(&losses, &all, 4, Parallelism::of(call.target()));
    let mut plan = call.plan();
    plan.output(Count::bytes(input));
    plan.hold(Count::bytes(input));
    if let Some(buffers) = buffers {
        plan.hold(buffers.partials);
        plan.hold(buffers.semaphores);
    }
    plan.finish();
    Some(())
}

/// `log_sigmoid_forward`: the CPU keeps `exp(-|x|)` for backward, CUDA computes it again
/// (aten/src/ATen/native/Activation.cpp, `log_sigmoid_forward_cpu`, `log_sigmoid_forward_cuda`).
fn log_sigmoid(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let [_, buffer] = call.blocks()[..] else { return None };
    call.edits.drop_block(buffer);
    Some(())
}

/// `_ctc_loss(log_probs, targets, input_lengths, target_lengths, …)`: three lists of lengths go to the
/// GPU for the length of the call (aten/src/ATen/native/cuda/LossCTC.cu, `ctc_loss_gpu_template`).
fn ctc(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let lengths = Count(sequences(call.arguments().tensor(0)?)) * 8;
    let mut plan = call.plan();
    plan.hold_each([lengths; 3]);
    plan.all_outputs();
    plan.finish();
    Some(())
}

/// `_ctc_loss_backward(grad, log_probs, targets, …, neg_log_likelihood, log_alpha, …)`: `log_beta`
/// beside the gradient, and the lengths again (LossCTC.cu, `ctc_loss_backward_gpu_template`).
fn ctc_backward(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let (probabilities, alpha) = (call.arguments().tensor(1)?, call.arguments().tensor(6)?);
    let lengths = Count(sequences(probabilities)) * 8;
    let mut plan = call.plan();
    plan.hold_each([lengths; 3]);
    plan.hold(Count::bytes(alpha));
    plan.output(Count::bytes(probabilities));
    plan.finish();
    Some(())
}

/// The sequences of a batch of log-probabilities: time, batch, classes.
fn sequences(probabilities: &TensorArg) -> u64 {
    if probabilities.dims.len() == 3 { probabilities.dims[1] } else { 1 }
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "mse_loss: the losses of all elements, summed over thread blocks",
                script: one_operator(
                    "aten::mse_loss",
                    "f32[256,1000] f32[256,1000] 1",
                    &[1_024_000],
                ),
                target: target(),
                requests: expect![[r#"
                    mse_loss: the losses of all elements, summed over thread blocks
                        + y0 1024000 activation
                    on  + loss-buffers#1 1024000 workspace
                    on  + loss-buffers#2 128 workspace
                    on  + loss-buffers#3 4 workspace
                    on  - loss-buffers#3
                    on  - loss-buffers#2
                    on  - loss-buffers#1
                        - y0
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "under autocast: the inner call, with the cast inputs",
                script: mse_under_autocast(),
                target: target(),
                requests: expect![[r#"
                    under autocast: the inner call, with the cast inputs
                        + x 1024000 activation
                        + y 1024000 activation
                    on  + loss-buffers#1 1024000 workspace
                    on  + loss-buffers#2 128 workspace
                    on  + loss-buffers#3 4 workspace
                    on  - loss-buffers#3
                    on  - loss-buffers#2
                    on  - loss-buffers#1
                        - x
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "log_sigmoid: no buffer for backward",
                script: one_operator(
                    "aten::log_sigmoid_forward",
                    "f32[256,1000]",
                    &[1_024_000, 1_024_000],
                ),
                target: target(),
                requests: expect![[r#"
                    log_sigmoid: no buffer for backward
                        + y0 1024000 activation
                    off + y1 1024000 activation
                        - y0
                    off - y1
                "#]],
            },
        ]
    }

    fn one_operator(operator: &str, arguments: &str, outputs: &[u64]) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, operator, arguments, |t| {
                for (i, &bytes) in outputs.iter().enumerate() {
                    t.alloc(&format!("y{i}"), bytes);
                }
            });
            t.node(1, "SomeBackward0", |_| ());
            for i in 0..outputs.len() {
                t.free(&format!("y{i}"));
            }
        });
        t
    }

    fn mse_under_autocast() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op("aten::mse_loss", "bf16[256,1000] bf16[256,1000] 1", |t| {
                t.op("aten::to", "bf16[256,1000] 6 False False -", |t| {
                    t.makes_seq(
                        1,
                        "aten::_to_copy",
                        "bf16[256,1000] 6 - - - False -",
                        "x",
                        1_024_000,
                    );
                });
                t.op_seq(2, "aten::mse_loss", "f32[256,1000] f32[256,1000] 1", |t| {
                    t.alloc("y", 1_024_000);
                });
            });
            t.node(2, "MseLossBackward0", |_| ());
            t.free("x y");
        });
        t
    }
}
