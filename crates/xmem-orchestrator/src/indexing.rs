//! Writing through indices.

use crate::draft::Draft;
use crate::requests::{Ask, brief, is_contiguous, lay_out};
use crate::rules::name;
use crate::sorting::radix_scratch;
use crate::target::Target;
use xmem_analyzer::TensorArg;
use xmem_types::{Bytes, OpId};

/// `_index_put_impl_(self, indices, values, accumulate, unsafe)` with `accumulate`, as in the
/// backward of `x[indices]`: CUDA turns the indices into one linear index and sorts it
/// (aten/src/ATen/native/cuda/Indexing.cu, `index_put_with_sort_kernel`; IndexingUtils.cuh and
/// TensorAdvancedIndexingUtils.h `computeLinearIndex`). Without `accumulate` there is no scratch.
pub(crate) fn accumulate(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let (Some(to), Some(values)) = (arguments.tensor(0), arguments.tensor(2)) else { return };
    if arguments.value(3) != Some("True") {
        return;
    }
    let checked = arguments.value(4) == Some("False");
    let Written { indexed, count, rows } = written(to, values);
    let numbers = Ask::Hold(Bytes(count * INDEX));
    let mut asks = Vec::new();
    if checked {
        for _ in 0..indexed {
            for _ in ["smallest", "largest"] {
                asks.extend([Ask::Hold(Bytes(INDEX)), Ask::Hold(Bytes(1)), Ask::Free, Ask::Free]);
            }
        }
    }
    // Per index: wrapped around, times the stride; all but the first are added to that one.
    asks.extend([numbers, numbers, Ask::Free]);
    for _ in 1..indexed {
        asks.extend([numbers, numbers, Ask::Free, Ask::Free]);
    }
    if !is_contiguous(values) {
        asks.push(Ask::Hold(Bytes(values.bytes())));
    }
    // Sorted index, original position, positions to sort.
    asks.extend([numbers, numbers, numbers]);
    asks.extend(brief(radix_scratch(count, INDEX, INDEX, significant_bits(rows))));
    lay_out(draft, op, &asks, name::INDEX_BACKWARD);
}

/// Bytes of an index.
const INDEX: u64 = 8;

const fn significant_bits(largest: u64) -> u32 {
    u64::BITS - largest.leading_zeros()
}

/// What an assignment writes to.
struct Written {
    /// Dimensions of the tensor that have an index.
    indexed: usize,
    /// Elements of each index.
    count: u64,
    /// Places that an index can name.
    rows: u64,
}

/// The profiler does not record lists of optional tensors. Dimensions at both ends that tensor and
/// values have in common are taken to be those without an index.
fn written(to: &TensorArg, values: &TensorArg) -> Written {
    let alike = |a: &[u64], b: &[u64]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let reversed = |d: &[u64]| d.iter().rev().copied().collect::<Vec<_>>();
    let behind = alike(&reversed(&to.dims), &reversed(&values.dims));
    // At least one dimension has an index: where all are alike, the first.
    let behind = behind.min(to.dims.len().saturating_sub(1)).min(values.dims.len());
    let (to, values) =
        (&to.dims[..to.dims.len() - behind], &values.dims[..values.dims.len() - behind]);
    let before =
        alike(to, values).min(to.len().saturating_sub(1)).min(values.len().saturating_sub(1));
    Written {
        indexed: (to.len() - before).max(1),
        count: values[before..].iter().product(),
        rows: to.iter().product(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xmem_analyzer::DType;

    fn tensor(dims: &[u64]) -> TensorArg {
        TensorArg { dims: dims.to_vec(), strides: Vec::new(), dtype: DType::F32 }
    }

    #[test]
    fn indexed_dimensions_are_those_that_differ() {
        for (to, values, indexed, count) in [
            (&[2000, 64][..], &[5000, 64][..], 1, 5000),
            (&[64, 200, 32], &[3000, 32], 2, 3000),
            (&[64, 200, 32], &[64, 100, 32], 1, 100),
            (&[2000, 64], &[2000, 64], 1, 2000),
            (&[2000], &[30], 1, 30),
            (&[2000, 64], &[8, 50, 64], 1, 400),
        ] {
            let found = written(&tensor(to), &tensor(values));
            assert_eq!((found.indexed, found.count), (indexed, count), "{to:?} {values:?}");
        }
    }
}
