//! Norms of gradients, all at once: what `torch.nn.utils.clip_grad_norm_` measures.

use crate::draft::{Addition, Draft, Position};
use crate::rules::name;
use xmem_analyzer::{DType, Profile, Role, TensorArg};
use xmem_types::{Bytes, Nanos, OpId};

/// Elements of a tensor that one thread block handles
/// (aten/src/ATen/native/cuda/MultiTensorApply.cuh, `kChunkSize`).
const CHUNK: u64 = 65536;

/// Whether CUDA takes all norms of `_foreach_norm(tensors, ord)` with one kernel: it has one for the
/// norms 1, 2 and infinity; others go tensor by tensor
/// (aten/src/ATen/native/cuda/ForeachReduceOp.cu, `foreach_tensor_norm_cuda`).
pub(crate) fn has_kernel(profile: &Profile, op: OpId) -> bool {
    let order = profile.arguments(op).value(1).and_then(|v| v.parse::<f64>().ok());
    order.is_none_or(|order| order == 1.0 || order == 2.0 || order == f64::INFINITY)
}

/// The kernel has a partial result for each chunk of the largest tensor, for every tensor. They come
/// before the results and go when it has been launched; the results stay as the CPU makes them, one
/// after the other.
pub(crate) fn norms(draft: &mut Draft<'_>, op: OpId) {
    let profile = draft.profile;
    let tensors: Vec<&TensorArg> = profile
        .tree
        .children(op)
        .filter(|&o| profile.op_name(o) == "aten::linalg_vector_norm")
        .filter_map(|o| profile.arguments(o).tensor(0))
        .collect();
    let Some(first) = tensors.first() else { return };
    let chunks = tensors.iter().map(|t| t.numel().div_ceil(CHUNK)).max().unwrap_or_default();
    let partial = if first.dtype == DType::F64 { 8 } else { 4 };
    let size = Bytes(tensors.len() as u64 * chunks * partial);
    let alloc = Position::start(profile.op_start(op));
    let free = Position::end(profile.op_end(op) - Nanos(1));
    let role = Role::Workspace;
    draft.add(Addition { size, alloc, free: Some(free), role, op }, name::GRADIENT_NORM);
}
