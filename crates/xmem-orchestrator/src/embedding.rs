//! Embedding backward.

use crate::draft::{Addition, Draft};
use crate::rules::name;
use xmem_analyzer::Role;
use xmem_types::{Bytes, OpId};

/// Up to this many indices one kernel adds rows directly
/// (aten/src/ATen/native/cuda/Embedding.cu, `embedding_dense_backward_cuda`).
const DIRECT: u64 = 3072;

/// `embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)`: above
/// [`DIRECT`] indices the rows are sorted; the sort buffers and the per-segment partial sums live
/// until the operator returns.
pub(crate) fn backward(draft: &mut Draft<'_>, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let (Some(grad), Some(indices)) = (arguments.tensor(0), arguments.tensor(1)) else { return };
    let count = indices.numel();
    let Some(weights) = arguments.ints(2).and_then(|v| u64::try_from(*v.first()?).ok()) else {
        return;
    };
    let width = grad.dims.last().copied().unwrap_or(1);
    if count <= DIRECT {
        return;
    }
    let Some(output) = draft.blocks_in(op).into_iter().find(|&i| draft.escapes(i, op)) else {
        return;
    };
    let index = indices.dtype.size();
    let segments = count.min(weights);
    let partials = count / 10 + segments;
    let sizes = [
        count * index,                             // sorted indices
        count * index,                             // original positions
        count * index,                             // arange
        count * index * 2,                         // radix sort
        count * index,                             // segment offsets
        segments * index,                          // partials per segment
        segments * index,                          // their offsets
        partials * index,                          // partial segment offsets
        partials * width.next_multiple_of(32) * 4, // gradient per segment
    ];
    for size in sizes {
        let alloc = draft.after(output);
        let free = draft.after_position(crate::draft::Position::end(draft.profile.op_end(op)));
        draft.add(
            Addition { size: Bytes(size), alloc, free: Some(free), role: Role::Workspace, op },
            name::EMBEDDING,
        );
    }
}
