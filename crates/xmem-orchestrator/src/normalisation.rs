//! Normalisation layers.

use crate::draft::Draft;
use crate::requests::{Ask, lay_out};
use crate::rules::name;
use crate::target::Target;
use xmem_analyzer::{DType, TensorArg};
use xmem_types::{Bytes, OpId};

/// `native_batch_norm(input, weight, bias, running_mean, running_var, training, …)`: the statistics of
/// 16-bit inputs are 32 bits wide, and inputs whose channels are innermost are summed in steps
/// (aten/src/ATen/native/cuda/Normalization.cu, `batch_norm_cuda`; Normalization.cuh,
/// `batch_norm_stats_channels_last_cuda_template`). cuDNN has no scratch of PyTorch's here.
pub(crate) fn batch(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let Some(input) = arguments.tensor(0) else { return };
    let Some(&channels) = input.dims.get(1) else { return };
    let made = draft.blocks_in(op).into_iter().filter(|&i| draft.escapes(i, op));
    for statistic in made.skip(1).collect::<Vec<_>>() {
        if draft.items[statistic].size == Bytes(channels * 2) {
            draft.resize(statistic, Bytes(channels * 4), name::BATCH_NORM);
        }
    }
    let training = arguments.value(5) == Some("True");
    if training
        && channels_innermost(input)
        && !cudnn(arguments.tensor(1), arguments.tensor(3), input)
    {
        let mut asks = outputs(draft, op);
        asks.extend(staging(input, 4));
        lay_out(draft, op, &asks, name::BATCH_NORM);
    }
}

/// `native_batch_norm_backward(grad, input, weight, running_mean, running_var, save_mean,
/// save_invstd, train, eps, mask)`: CUDA makes the input's gradient before those of weight and bias,
/// where the CPU makes it last (aten/src/ATen/native/cudnn/BatchNorm.cpp
/// `cudnn_batch_norm_backward`; aten/src/ATen/native/cuda/Normalization.cuh
/// `batch_norm_backward_cuda_template`). cuDNN wants the gradient in the input's layout. Inputs whose
/// channels are innermost take PyTorch's own kernels in two steps, with sums per channel between them
/// (Normalization.cuh, `batch_norm_backward_reduce_cuda_channels_last_template`).
pub(crate) fn batch_backward(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let (Some(gradient), Some(input)) = (arguments.tensor(0), arguments.tensor(1)) else { return };
    let Some(&channels) = input.dims.get(1) else { return };
    let affine = Ask::Output(Bytes(arguments.tensor(2).map_or(0, TensorArg::bytes)));
    let output = Ask::Output(Bytes(input.bytes()));
    let mut asks = Vec::new();
    if cudnn(arguments.tensor(2), arguments.tensor(3), input) {
        if gradient.strides != input.strides {
            asks.push(Ask::Hold(Bytes(gradient.bytes())));
        }
        asks.extend([output, affine, affine]);
    } else if channels_innermost(input) {
        let sum = Ask::Hold(Bytes(channels * accumulator(input.dtype)));
        asks.extend([sum, sum, affine, affine]);
        if channels_innermost(gradient) {
            asks.extend(staging(input, 2));
        }
        asks.push(output);
    } else {
        asks.extend([output, affine, affine]);
    }
    lay_out(draft, op, &asks, name::BATCH_NORM);
}

/// Whether cuDNN takes a batch norm: not for bfloat16, rows of channels, or without weight or running
/// statistics (aten/src/ATen/native/Normalization.cpp, `_select_batch_norm_backend`).
fn cudnn(weight: Option<&TensorArg>, mean: Option<&TensorArg>, input: &TensorArg) -> bool {
    input.dims.len() > 2 && input.dtype != DType::BF16 && weight.is_some() && mean.is_some()
}

/// Rows of channels, or the memory format of that name. Strides that were not recorded are those of
/// the dimensions.
fn channels_innermost(tensor: &TensorArg) -> bool {
    match tensor.strides.get(1) {
        Some(&stride) => stride == 1,
        None => tensor.dims.len() == 2,
    }
}

/// Staging buffers where the rows are split over thread blocks: `numbers` a channel and block, and
/// semaphores (Normalization.cuh, `flexible_launch_configs`).
fn staging(input: &TensorArg, numbers: u64) -> Vec<Ask> {
    const THREADS: u64 = 512;
    const PER_THREAD: u64 = 16;
    let channels = input.dims[1].max(1);
    let rows = input.numel() / channels;
    let power = |n: u64| 1u64 << n.max(1).ilog2();
    let mut width = power(channels).min(32);
    let height = power(rows.div_ceil(PER_THREAD)).min(THREADS / width);
    if width * height != THREADS {
        width = power(channels).min(THREADS / height);
    }
    let blocks = rows.div_ceil(height * PER_THREAD).min(128);
    if blocks < 8 {
        return Vec::new();
    }
    vec![
        Ask::Hold(Bytes(numbers * channels * blocks * accumulator(input.dtype))),
        Ask::Hold(Bytes(4 * channels.div_ceil(width))),
        Ask::Free,
        Ask::Free,
    ]
}

/// Bytes of what CUDA accumulates a type in.
fn accumulator(dtype: DType) -> u64 {
    if dtype == DType::F64 { 8 } else { 4 }
}

/// `native_group_norm(input, weight, bias, N, C, HxW, group, eps)`: scale and shift per sample and
/// channel (aten/src/ATen/native/cuda/group_norm_kernel.cu, `GroupNormKernelImplInternal`).
pub(crate) fn group(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let Some(input) = arguments.tensor(0) else { return };
    let number = |i: usize| arguments.ints(i).and_then(|v| u64::try_from(*v.first()?).ok());
    let (Some(samples), Some(channels), Some(area)) = (number(3), number(4), number(5)) else {
        return;
    };
    let affine = arguments.tensor(1).is_some() || arguments.tensor(2).is_some();
    if area == 1 || !affine {
        return;
    }
    let scale = Ask::Hold(Bytes(samples * channels * accumulator(input.dtype)));
    let mut asks: Vec<Ask> = outputs(draft, op);
    asks.extend([scale, scale]);
    lay_out(draft, op, &asks, name::GROUP_NORM);
}

/// `native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW, group, mask)`: sums per
/// sample and channel, factors per sample and channel and per group (group_norm_kernel.cu,
/// `GroupNormBackwardKernelImplInternal`).
pub(crate) fn group_backward(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let (Some(input), Some(mean)) = (arguments.tensor(1), arguments.tensor(2)) else { return };
    let number = |i: usize| arguments.ints(i).and_then(|v| u64::try_from(*v.first()?).ok());
    let (Some(samples), Some(channels), Some(area)) = (number(5), number(6), number(7)) else {
        return;
    };
    let wide = accumulator(input.dtype);
    let channel = Ask::Hold(Bytes(samples * channels * wide));
    let group = Ask::Hold(Bytes(mean.numel() * wide));
    let mut asks = vec![Ask::Output(Bytes(input.bytes()))];
    if let Some(weight) = arguments.tensor(4) {
        asks.extend([Ask::Output(Bytes(weight.bytes())); 2]);
    }
    asks.extend([channel, channel, group, group]);
    if area > 1 {
        asks.push(channel);
    }
    lay_out(draft, op, &asks, name::GROUP_NORM);
}

/// `native_layer_norm(input, normalized_shape, weight, bias, eps)`: mean and reciprocal deviation of
/// 16-bit inputs are 32 bits wide (aten/src/ATen/native/cuda/layer_norm_kernel.cu,
/// `layer_norm_cuda`).
pub(crate) fn layer(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let Some(input) = arguments.tensor(0).filter(|t| t.dtype.is_half()) else { return };
    let Some(shape) = arguments.ints(1) else { return };
    let kept = input.dims.len().saturating_sub(shape.len());
    let rows: u64 = input.dims[..kept].iter().product();
    let statistics: Vec<usize> =
        draft.blocks_in(op).into_iter().filter(|&i| draft.escapes(i, op)).skip(1).collect();
    for i in statistics {
        if draft.items[i].size == Bytes(rows * input.dtype.size()) {
            draft.resize(i, Bytes(rows * 4), name::LAYER_NORM);
        }
    }
}

fn outputs(draft: &Draft<'_>, op: OpId) -> Vec<Ask> {
    let made = draft.blocks_in(op).into_iter().filter(|&i| draft.escapes(i, op));
    made.map(|i| Ask::Output(draft.items[i].size)).collect()
}
