//! The order of a tensor's elements in memory.

use crate::frame::count::Count;
use xmem_analyzer::TensorArg;

/// Returns whether a tensor's elements lie in the order of its dimensions; assumed where strides were not
/// recorded.
pub(crate) fn is_contiguous(tensor: &TensorArg) -> bool {
    let mut next = Count(1);
    let dims = tensor.dims.iter().zip(&tensor.strides).rev().filter(|(d, _)| **d != 1);
    for (&dim, &stride) in dims {
        if stride.unsigned_abs() != next.get() {
            return false;
        }
        next = next * dim;
    }
    true
}
