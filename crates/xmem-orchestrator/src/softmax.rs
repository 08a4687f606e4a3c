//! Softmax backward.

use crate::draft::Draft;
use crate::rules::name;
use xmem_types::{Bytes, OpId};

/// CUDA computes `grad * output` into a temporary first, as wide as the gradient that it makes.
pub(crate) fn backward(draft: &mut Draft<'_>, op: OpId) {
    let Some(grad) = draft.profile.arguments(op).tensor(0) else { return };
    let size = Bytes(grad.bytes());
    let output = draft.blocks_in(op).into_iter().find(|&i| draft.escapes(i, op));
    if let Some(output) = output {
        let size = size.max(draft.items[output].size);
        draft.add_call_scratch(size, output, op, name::SOFTMAX_BACKWARD);
    }
}
