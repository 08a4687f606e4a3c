//! Losses that are one operator.

use crate::draft::Draft;
use crate::reduction::{self, Parallelism};
use crate::requests::{Ask, lay_out};
use crate::rules::name;
use crate::target::Target;
use xmem_analyzer::TensorArg;
use xmem_types::{Bytes, OpId};

/// `mse_loss` and `smooth_l1_loss(self, target, reduction, …)`, reduced: the losses of all elements
/// are a block of their own, summed by one kernel (aten/src/ATen/native/Loss.cpp,
/// `mse_loss_out`, `smooth_l1_loss_out`). The result keeps the size of the inputs, on both devices.
pub(crate) fn reduced(draft: &mut Draft<'_>, target: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let Some(input) = arguments.tensor(0) else { return };
    let target_size = arguments.tensor(1).map_or(0, TensorArg::numel);
    if arguments.value(2) == Some("0") || input.numel() < target_size {
        return;
    }
    let size = Bytes(input.bytes());
    let mut asks = vec![Ask::Output(size), Ask::Hold(size)];
    let reduced = vec![true; input.dims.len()];
    let losses = TensorArg { strides: Vec::new(), ..input.clone() };
    if let Some(buffers) = reduction::buffers(&losses, &reduced, 4, Parallelism::of(target)) {
        asks.extend([Ask::Hold(buffers.partials), Ask::Hold(buffers.semaphores)]);
    }
    lay_out(draft, op, &asks, name::LOSS_BUFFERS);
}

/// `log_sigmoid_forward`: the CPU keeps `exp(-|x|)` for backward, CUDA computes it again
/// (aten/src/ATen/native/Activation.cpp, `log_sigmoid_forward_cpu`, `log_sigmoid_forward_cuda`).
pub(crate) fn log_sigmoid(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let made = draft.blocks_in(op);
    if let [_, buffer] = made[..] {
        draft.drop_block(buffer, name::LOSS_BUFFERS);
    }
}

/// `_ctc_loss(log_probs, targets, input_lengths, target_lengths, …)`: three lists of lengths go to
/// the GPU for the length of the call (aten/src/ATen/native/cuda/LossCTC.cu, `ctc_loss_gpu_template`).
pub(crate) fn ctc(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let Some(sequences) = sequences(draft, op, 0) else { return };
    let mut asks = vec![Ask::Hold(Bytes(sequences * 8)); 3];
    let outputs: Vec<Bytes> = outputs(draft, op);
    asks.extend(outputs.into_iter().map(Ask::Output));
    lay_out(draft, op, &asks, name::LOSS_BUFFERS);
}

/// `_ctc_loss_backward(grad, log_probs, targets, …, neg_log_likelihood, log_alpha, …)`: `log_beta`
/// beside the gradient, and the lengths again (LossCTC.cu, `ctc_loss_backward_gpu_template`).
pub(crate) fn ctc_backward(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let Some(sequences) = sequences(draft, op, 1) else { return };
    let arguments = draft.profile.arguments(op);
    let (Some(probabilities), Some(alpha)) = (arguments.tensor(1), arguments.tensor(6)) else {
        return;
    };
    let mut asks = vec![Ask::Hold(Bytes(sequences * 8)); 3];
    asks.push(Ask::Hold(Bytes(alpha.bytes())));
    asks.push(Ask::Output(Bytes(probabilities.bytes())));
    lay_out(draft, op, &asks, name::LOSS_BUFFERS);
}

/// Sequences of a batch of log-probabilities: time, batch, classes.
fn sequences(draft: &Draft<'_>, op: OpId, position: usize) -> Option<u64> {
    let probabilities = draft.profile.arguments(op).tensor(position)?;
    Some(if probabilities.dims.len() == 3 { probabilities.dims[1] } else { 1 })
}

fn outputs(draft: &Draft<'_>, op: OpId) -> Vec<Bytes> {
    let made = draft.blocks_in(op).into_iter().filter(|&i| draft.escapes(i, op));
    made.map(|i| draft.items[i].size).collect()
}
