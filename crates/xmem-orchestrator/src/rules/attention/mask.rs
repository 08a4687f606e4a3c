//! Attention masks on the way into a kernel
//! (aten/src/ATen/native/transformers/attention.cpp, `convert_boolean_attn_mask`,
//! `preprocess_mask`, `pad_bias`).

use super::select::AttentionCall;
use crate::frame::count::Count;
use crate::frame::draft::{Piece, Plan};
use xmem_analyzer::{DType, TensorArg};
use xmem_types::Bytes;

/// Elements to which the memory-efficient kernel wants a mask's rows aligned.
const ALIGNMENT: u64 = 8;

/// Bytes of the additive mask that a boolean one becomes, in the query's type.
pub(super) fn converted(call: &AttentionCall) -> Option<Bytes> {
    let mask = call.mask.as_ref().filter(|m| m.dtype == DType::Bool)?;
    Some(Count::elements(mask).of(call.query.dtype).into())
}

/// Bytes of the copy with longer rows that the memory-efficient kernel takes of a mask whose rows
/// are not aligned.
pub(super) fn padded(call: &AttentionCall) -> Option<Bytes> {
    let mask = call.mask.as_ref()?;
    let row = *mask.dims.last()?;
    let strides = if mask.dtype == DType::Bool { &[] } else { mask.strides.as_slice() };
    if row == 0 || is_aligned(mask, strides) {
        return None;
    }
    let rows = Count::elements(mask) / row;
    Some((rows * Count(row).next_multiple_of(ALIGNMENT)).of(call.query.dtype).into())
}

/// Bytes of the mask's gradient as the memory-efficient kernel writes it: for every batch entry and
/// head, with rows of a multiple of 16 elements
/// (aten/src/ATen/native/transformers/cuda/attention_backward.cu, `grad_bias`).
pub(super) fn written(call: &AttentionCall) -> Bytes {
    (call.rows() * Count(call.key.dims[2]).next_multiple_of(16)).of(call.query.dtype).into()
}

/// A converted mask is dense; one that was handed in has the strides that it has.
fn is_aligned(mask: &TensorArg, strides: &[i64]) -> bool {
    match strides.split_last() {
        Some((&last, outer)) => {
            last == 1 && outer.iter().all(|s| s.unsigned_abs() % ALIGNMENT == 0)
        }
        None => mask.dims.len() < 2 || mask.dims[mask.dims.len() - 1].is_multiple_of(ALIGNMENT),
    }
}

/// A boolean mask becomes zeros and minus infinities, with two scalars on the way.
pub(super) fn convert(
    plan: &mut Plan<'_, '_, '_>,
    size: impl Into<Bytes>,
    element: DType,
) -> Piece {
    let infinity = plan.take(Bytes(element.size()));
    let zero = plan.take(Bytes(element.size()));
    let mask = plan.take(size);
    plan.free_all([zero, infinity]);
    mask
}
