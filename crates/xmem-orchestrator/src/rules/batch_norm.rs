//! Batch normalization. `native_batch_norm`: the statistics of 16-bit inputs are 32 bits wide, and inputs
//! whose channels are innermost are summed in steps. `native_batch_norm_backward`: CUDA makes the input's
//! gradient before those of weight and bias, where the CPU makes it last. cuDNN wants the gradient in the
//! input's layout, and a workspace where channels are innermost ([`workspaces`]); else no workspace. Inputs
//! whose channels are innermost that cuDNN does not take have PyTorch's own kernels in two steps, with sums per
//! channel between them.

mod workspaces;

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::frame::draft::Plan;
use crate::rule::Rule;
use workspaces::Rows;
use xmem_analyzer::{DType, TensorArg};
use xmem_types::{BlockId, Bytes};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "batch-norm",
        summary: "batch norm's backward makes the input's gradient first; where channels are innermost, sums per channel and thread block are scratch, in cuDNN's workspace as measured",
        source: "aten/src/ATen/native/cudnn/BatchNorm.cpp `cudnn_batch_norm_backward`; aten/src/ATen/native/cuda/Normalization.cuh `batch_norm_backward_reduce_cuda_channels_last_template`",
        operators: &["aten::native_batch_norm", "aten::native_batch_norm_backward"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    Outcome::of_innermost(call, |call| match call.name() {
        "aten::native_batch_norm" => forward(call),
        _ => backward(call),
    })
}

/// `native_batch_norm(input, weight, bias, running_mean, running_var, training, …)`
/// (aten/src/ATen/native/cuda/Normalization.cu, `batch_norm_cuda`; Normalization.cuh,
/// `batch_norm_stats_channels_last_cuda_template`).
fn forward(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let input = arguments.tensor(0)?;
    let &channels = input.dims.get(1)?;
    let made = call.blocks().into_iter().filter(|&block| call.escapes(block));
    for statistic in made.skip(1).collect::<Vec<BlockId>>() {
        if call.edits.item(statistic).size() == Bytes::from(Count(channels) * 2) {
            call.edits.resize(statistic, (Count(channels) * 4).into());
        }
    }
    let training = arguments.value(5) == Some("True");
    let cudnn = runs_in_cudnn(arguments.tensor(1), arguments.tensor(3), input);
    if training && channels_innermost(input) {
        let mut plan = call.plan();
        plan.all_outputs();
        match cudnn_rows(input).filter(|_| cudnn) {
            Some(rows) => scratch(&mut plan, rows.forward()),
            None if cudnn => {}
            None => stage(&mut plan, input, 4),
        }
        plan.finish();
    }
    Some(())
}

/// `native_batch_norm_backward(grad, input, weight, running_mean, running_var, save_mean,
/// save_invstd, train, eps, mask)` (aten/src/ATen/native/cudnn/BatchNorm.cpp
/// `cudnn_batch_norm_backward`; aten/src/ATen/native/cuda/Normalization.cuh
/// `batch_norm_backward_cuda_template`, `batch_norm_backward_reduce_cuda_channels_last_template`).
fn backward(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let (gradient, input) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let &channels = input.dims.get(1)?;
    let affine = arguments.tensor(2).map_or(Count(0), Count::bytes);
    let output = Count::bytes(input);
    let training = arguments.value(7).map(str::to_owned);
    let mut plan = call.plan();
    if runs_in_cudnn(arguments.tensor(2), arguments.tensor(3), input) {
        if gradient.strides != input.strides {
            plan.hold(Count::bytes(gradient));
        }
        plan.output_each([output, affine, affine]);
        let training = training.as_deref() == Some("True");
        if let Some(rows) = cudnn_rows(input).filter(|_| training && channels_innermost(input)) {
            scratch(&mut plan, rows.backward());
        }
    } else if channels_innermost(input) {
        let sum = Count(channels) * accumulator(input.dtype);
        plan.hold_each([sum, sum]);
        plan.output_each([affine, affine]);
        if channels_innermost(gradient) {
            stage(&mut plan, input, 2);
        }
        plan.output(output);
    } else {
        plan.output_each([output, affine, affine]);
    }
    plan.finish();
    Some(())
}

/// Returns whether cuDNN takes a batch norm: not for bfloat16, rows of channels, or without weight or running
/// statistics (aten/src/ATen/native/Normalization.cpp, `_select_batch_norm_backend`).
fn runs_in_cudnn(weight: Option<&TensorArg>, mean: Option<&TensorArg>, input: &TensorArg) -> bool {
    input.dims.len() > 2 && input.dtype != DType::BF16 && weight.is_some() && mean.is_some()
}

/// Returns whether channels are innermost: rows of channels, or the memory format of that name. Strides that were
/// not recorded are those of the dimensions.
fn channels_innermost(tensor: &TensorArg) -> bool {
    match tensor.strides.get(1) {
        Some(&stride) => stride == 1,
        None => tensor.dims.len() == 2,
    }
}

/// What cuDNN's workspace follows from; none for images of one pixel, whose channels are first as well as last.
fn cudnn_rows(input: &TensorArg) -> Option<Rows> {
    let pixels: Count = input.dims.iter().skip(2).copied().map(Count).product();
    if pixels > Count(1) { Rows::of(input) } else { None }
}

fn scratch(plan: &mut Plan<'_, '_, '_>, size: Count) {
    let workspace = plan.take(size);
    plan.free_all([workspace]);
}

/// Allocates and frees staging buffers where the rows are split over thread blocks: `numbers` a channel
/// and block, and semaphores (Normalization.cuh, `flexible_launch_configs`).
fn stage(plan: &mut Plan<'_, '_, '_>, input: &TensorArg, numbers: u64) {
    const THREADS: u64 = 512;
    const PER_THREAD: u64 = 16;
    let channels = input.dims[1].max(1);
    let rows = (Count::elements(input) / channels).get();
    let power = |n: u64| 1u64 << n.max(1).ilog2();
    let mut width = power(channels).min(32);
    let height = power(rows.div_ceil(PER_THREAD)).min(THREADS / width);
    if width * height != THREADS {
        width = power(channels).min(THREADS / height);
    }
    let blocks = rows.div_ceil(height * PER_THREAD).min(128);
    if blocks < 8 {
        return;
    }
    let sums = plan.take(Count(channels) * numbers * blocks * accumulator(input.dtype));
    let semaphores = plan.take(Count(channels.div_ceil(width)) * 4);
    plan.free_all([semaphores, sums]);
}

/// The bytes of the type that CUDA accumulates a type in.
pub(super) fn accumulator(dtype: DType) -> u64 {
    if dtype == DType::F64 { 8 } else { 4 }
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
                rule: RULE.name,
                shows: "cuDNN, channels innermost: a workspace",
                script: batch_norm("f32[8,24,40,36]:34560,1,864,24", 1_105_920, 96),
                target: target(),
                requests: expect![[r#"
                    cuDNN, channels innermost: a workspace
                        + y 1105920 activation
                    off + gw 96 gradient
                    off + gb 96 gradient
                        + gx 1105920 gradient
                    on  + gw 96 gradient batch-norm
                    on  + gb 96 gradient batch-norm
                    on  + batch-norm#1 63012 workspace
                    on  - batch-norm#1
                        - y
                        - gx
                        - gw
                        - gb
                "#]],
            },
            Case {
                rule: RULE.name,
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
                rule: RULE.name,
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
}
