//! The memory of CUDA's fused attention kernels
//! (aten/src/ATen/native/transformers/cuda/attention.cu, attention_backward.cu). Sizes and order
//! recorded with PyTorch 2.11's CUDA build, kernels stubbed.

use super::efficient::{self, EfficientKernel};
use super::select::{AttentionCall, Backend};
use crate::frame::count::Count;
use crate::frame::draft::Plan;
use xmem_devices::ComputeCapability;
use xmem_types::Bytes;

/// A fused kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fused {
    Flash,
    Efficient(EfficientKernel),
    Cudnn,
}

impl Fused {
    /// The kernel of a backend; `None` for the math path.
    pub(super) fn of(
        backend: Backend,
        call: &AttentionCall,
        capability: ComputeCapability,
    ) -> Option<Self> {
        match backend {
            Backend::Flash => Some(Self::Flash),
            Backend::Efficient => Some(Self::Efficient(EfficientKernel::of(call, capability))),
            Backend::Cudnn => Some(Self::Cudnn),
            Backend::Math => None,
        }
    }

    /// Returns whether this is one of the memory-efficient kernels.
    pub(super) const fn is_efficient(self) -> bool {
        matches!(self, Self::Efficient(_))
    }

    /// The scratch of the forward.
    pub(super) fn forward_scratch(self, call: &AttentionCall) -> Option<Bytes> {
        self.is_efficient().then(|| efficient::forward_scratch(call)).flatten()
    }

    /// The sizes of what the forward saves beside the output.
    pub(super) fn saved(self, call: &AttentionCall) -> Vec<Bytes> {
        let sums = call.rows() * 4;
        match self {
            Self::Flash => vec![sums.into(), Bytes(16), Bytes(8)],
            Self::Efficient(_) => {
                let rows = Count(call.batch()) * call.heads();
                vec![(rows * Count(call.length()).next_multiple_of(32) * 4).into()]
            }
            Self::Cudnn => vec![sums.into(), Bytes(8), Bytes(8)],
        }
    }

    /// Requests the scratch of the backward.
    pub(super) fn backward_scratch(self, plan: &mut Plan<'_, '_, '_>, call: &AttentionCall) {
        match self {
            Self::Flash => flash_backward(plan, call),
            Self::Efficient(kernel) => efficient_backward(plan, call, kernel),
            Self::Cudnn => cudnn_backward(plan, call),
        }
    }
}

/// The gradients of each query head's key and value, for grouped queries.
fn expanded(call: &AttentionCall) -> Vec<Count> {
    if !call.grouped() {
        return Vec::new();
    }
    [&call.key, &call.value].map(|tensor| call.for_all_heads(tensor)).to_vec()
}

fn flash_backward(plan: &mut Plan<'_, '_, '_>, call: &AttentionCall) {
    let padded = Count(call.batch()) * call.heads() * Count(call.length()).next_multiple_of(128);
    let accumulator = padded * Count(call.width()).next_multiple_of(32) * 4;
    let sizes = [padded * 4, accumulator].into_iter().chain(expanded(call));
    let pieces: Vec<_> = sizes.map(|size| plan.take(size)).collect();
    plan.free_all(pieces.into_iter().rev());
}

/// One workspace: a 32-bit query gradient, a number per row, for grouped queries the gradients of each
/// query head's key and value, and a header.
fn cudnn_backward(plan: &mut Plan<'_, '_, '_>, call: &AttentionCall) {
    let size = call.rows() * (Count(call.width()) + 1) * 4 + 512;
    plan.touch(expanded(call).into_iter().fold(size, |sum, size| sum + size));
}

fn efficient_backward(plan: &mut Plan<'_, '_, '_>, call: &AttentionCall, kernel: EfficientKernel) {
    let delta = call.rows() * 4;
    // Grouped queries: gradients of each query head's key and value, then summed.
    let grouped: Vec<_> = expanded(call).into_iter().map(|size| plan.take(size)).collect();
    if call.query.dtype.is_half() {
        // The kernel computes the row sums itself.
        let sums = plan.take(delta);
        let workspace = plan.take(kernel.workspace(call));
        plan.free_all([sums, workspace]);
    } else {
        let copy = if call.sequence_first() { call.output_bytes() } else { Count(0) };
        let copy = plan.take(copy);
        let product = plan.take(call.output_bytes());
        let [sums, wide] = [plan.take(delta), plan.take(delta)];
        plan.free_all([sums, product]);
        let workspace = plan.take(kernel.workspace(call));
        plan.free_all([wide, workspace, copy]);
    }
    plan.free_all(grouped.into_iter().rev());
}
