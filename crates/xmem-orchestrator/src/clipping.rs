//! Norms of gradients, all at once: what `torch.nn.utils.clip_grad_norm_` measures.

use crate::draft::{Addition, Draft, Position};
use crate::rules::name;
use xmem_analyzer::{DType, Role, TensorArg};
use xmem_types::{Bytes, Nanos, OpId};

/// Elements of a tensor that one thread block handles
/// (aten/src/ATen/native/cuda/MultiTensorApply.cuh, `kChunkSize`).
const CHUNK: u64 = 65536;

/// `_foreach_norm(tensors, ord)`: the CPU takes one norm after the other. CUDA's kernel for the norms
/// 1, 2 and infinity has a partial result for each chunk of the largest tensor, for every tensor
/// (aten/src/ATen/native/cuda/ForeachReduceOp.cu, `foreach_tensor_norm_cuda`).
///
/// The results stay; the partial results come before them and go when the kernel has been launched.
/// Says whether there is such a kernel: other norms are taken tensor by tensor.
pub(crate) fn norms(draft: &mut Draft<'_>, op: OpId) -> bool {
    let profile = draft.profile;
    let tensors: Vec<&TensorArg> = profile
        .tree
        .children(op)
        .filter(|&o| profile.op_name(o) == "aten::linalg_vector_norm")
        .filter_map(|o| profile.arguments(o).tensor(0))
        .collect();
    let order = profile.arguments(op).value(1).and_then(|v| v.parse::<f64>().ok());
    let Some(first) = tensors.first().filter(|_| order.is_none_or(has_kernel)) else {
        return false;
    };
    let chunks = tensors.iter().map(|t| t.numel().div_ceil(CHUNK)).max().unwrap_or_default();
    let partial = if first.dtype == DType::F64 { 8 } else { 4 };
    let size = Bytes(tensors.len() as u64 * chunks * partial);
    let alloc = Position::start(profile.op_start(op));
    let free = Position::end(profile.op_end(op) - Nanos(1));
    let role = Role::Workspace;
    draft.add(Addition { size, alloc, free: Some(free), role, op }, name::GRADIENT_NORM);
    true
}

fn has_kernel(order: f64) -> bool {
    order == 1.0 || order == 2.0 || order == f64::INFINITY
}
