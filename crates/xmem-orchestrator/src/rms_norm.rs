//! RMS norm: one kernel instead of a chain of operators.

use crate::attention::NodesOf;
use crate::draft::{Addition, Draft, Position};
use crate::rules::name::RMS_NORM;
use xmem_analyzer::{Role, TensorArg};
use xmem_types::{Bytes, OpId};

/// `_fused_rms_norm(input, normalized_shape, weight, eps)`.
///
/// The CPU computes it from `pow`, `mean`, `rsqrt` and `mul`, each with a result and an autograd node
/// of its own (aten/src/ATen/native/layer_norm.cpp, `rms_norm_composite`). CUDA makes the output and
/// one 32-bit number a row, which backward needs; backward makes the gradients of input and weight
/// and nothing else (aten/src/ATen/native/cuda/layer_norm_kernel.cu, `_fused_rms_norm_cuda`,
/// `_fused_rms_norm_backward_cuda`). Returns the backward nodes that are replaced.
pub(crate) fn fuse(draft: &mut Draft<'_>, nodes_of: &NodesOf, op: OpId) -> Vec<OpId> {
    let profile = draft.profile;
    let arguments = profile.arguments(op);
    let Some(input) = arguments.tensor(0) else { return Vec::new() };
    let normalised = arguments.ints(1).map_or(1, |shape| shape.len());
    let kept = input.dims.len().saturating_sub(normalised);
    let rows = Bytes(4 * input.dims[..kept].iter().product::<u64>());
    let made = draft.blocks_in(op);
    let of_size =
        |size: Bytes| made.iter().copied().filter(move |&i| profile.blocks[i].size == size);
    let Some(output) = of_size(Bytes(input.bytes())).rfind(|&i| draft.escapes(i, op)) else {
        return Vec::new();
    };
    // The last number a row that is kept: what the CPU's backward needs of `rsqrt`.
    let reciprocal = of_size(rows).rfind(|&i| draft.escapes(i, op));
    for i in made.iter().copied().filter(|&i| i != output && Some(i) != reciprocal) {
        draft.drop_block(i, RMS_NORM);
    }
    draft.items[output].settled = true;
    let alloc = draft.after(output);
    if let Some(reciprocal) = reciprocal {
        let free = draft.items[reciprocal].free;
        draft.retime(reciprocal, alloc, free, RMS_NORM);
        draft.items[reciprocal].settled = true;
    } else {
        let free = Some(Position::end(profile.op_end(op)));
        draft.add(Addition { size: rows, alloc, free, role: Role::Temporary, op }, RMS_NORM);
    }
    let inside = profile.tree.descendants(op);
    let mut nodes: Vec<OpId> =
        inside.iter().filter_map(|o| nodes_of.get(o)).flatten().copied().collect();
    nodes.sort_unstable_by_key(|&n| (profile.op_start(n), n));
    backward(draft, &nodes, input, arguments.tensor(2));
    nodes
}

/// Of all that the nodes made, the gradients stay: those blocks that outlive the last node.
fn backward(draft: &mut Draft<'_>, nodes: &[OpId], input: &TensorArg, weight: Option<&TensorArg>) {
    let (Some(&first), Some(&last)) = (nodes.first(), nodes.last()) else { return };
    let profile = draft.profile;
    let mut made: Vec<usize> = nodes.iter().flat_map(|&n| draft.blocks_in(n)).collect();
    made.sort_unstable();
    made.dedup();
    let gradient = |of: &TensorArg, taken: Option<usize>| {
        made.iter().copied().rfind(|&i| {
            draft.items[i].size == Bytes(of.bytes()) && draft.escapes(i, last) && Some(i) != taken
        })
    };
    let of_input = gradient(input, None);
    let of_weight = weight.and_then(|w| gradient(w, of_input));
    for &i in made.iter().filter(|&&i| Some(i) != of_input && Some(i) != of_weight) {
        draft.drop_block(i, RMS_NORM);
    }
    // Where the engine adds what flows around the layer, the kernel's result is a block of its own:
    // added into the other, or both into a third.
    let by = |i: usize| profile.blocks[i].op.map(|op| profile.op_name(op));
    let sum = of_input.filter(|&i| by(i) == Some("aten::add"));
    let flows = nodes.iter().any(|&n| profile.op_name(n).contains("PowBackward"));
    let mut at = Position::start(profile.op_start(first));
    let mut result = None;
    if sum.is_some() || (flows && of_input.is_none()) {
        at = draft.after_position(at);
        result = Some(at);
    }
    for i in [of_input.filter(|_| sum.is_none()), of_weight, sum].into_iter().flatten() {
        at = draft.after_position(at);
        let free = draft.items[i].free;
        draft.retime(i, at, free, RMS_NORM);
        draft.items[i].settled = true;
    }
    if let Some(alloc) = result {
        let (size, free) = (Bytes(input.bytes()), Some(draft.after_position(at)));
        draft.add(Addition { size, alloc, free, role: Role::Temporary, op: first }, RMS_NORM);
    }
}
