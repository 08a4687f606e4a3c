//! Pairwise distances.

use crate::draft::Draft;
use crate::requests::{Ask, lay_out};
use crate::rules::name;
use crate::target::Target;
use xmem_types::{Bytes, OpId};

/// `_cdist_backward(grad, x1, x2, p, cdist)`: CUDA writes one row for each pair of vectors and sums
/// them (aten/src/ATen/native/cuda/DistanceKernel.cu, `cdist_backward_kernel_impl`).
pub(crate) fn cdist_backward(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let (Some(x1), Some(x2)) = (arguments.tensor(1), arguments.tensor(2)) else { return };
    let rows = x2.dims.iter().rev().nth(1).copied().unwrap_or(1);
    let pairs = Bytes(x1.bytes() * rows);
    lay_out(draft, op, &[Ask::Output(Bytes(x1.bytes())), Ask::Hold(pairs)], name::CDIST);
}
