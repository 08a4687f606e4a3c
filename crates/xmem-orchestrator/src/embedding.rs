//! Embeddings: gradients of the rows, and limiting their norm.

use crate::draft::{Addition, Draft};
use crate::requests::{Ask, brief, is_contiguous, lay_out};
use crate::rules::name;
use crate::sorting::radix_scratch;
use crate::target::Target;
use xmem_analyzer::Role;
use xmem_types::{Bytes, OpId};

/// Up to this many indices one kernel adds rows directly
/// (aten/src/ATen/native/cuda/Embedding.cu, `embedding_dense_backward_cuda`).
const DIRECT: u64 = 3072;

/// Scratch of CUB's scans and of its selection of unique keys: recorded for up to 6400 keys.
const SCAN: u64 = 1279;

/// `embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)`: above
/// [`DIRECT`] indices, or scaled by frequency, the rows are sorted; the sorted indices and the
/// partial sums live until the operator returns.
pub(crate) fn backward(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let (Some(grad), Some(indices)) = (arguments.tensor(0), arguments.tensor(1)) else { return };
    let (count, index) = (indices.numel(), indices.dtype.size());
    let Some(weights) = arguments.ints(2).and_then(|v| u64::try_from(*v.first()?).ok()) else {
        return;
    };
    let scaled = arguments.value(4) == Some("True");
    if count <= DIRECT && !scaled {
        return;
    }
    let width = grad.dims.last().copied().unwrap_or(1);
    let counts = if scaled { Counts::Made } else { Counts::None };
    let rows = Rows { count, index, weights, width, element: grad.dtype.size() };
    let mut asks = Vec::new();
    if !is_contiguous(grad) {
        asks.push(Ask::Hold(Bytes(grad.bytes())));
    }
    asks.extend(sorted(&rows, counts));
    lay_out(draft, op, &asks, name::EMBEDDING);
}

/// A gradient of rows.
struct Rows {
    /// Indices, and bytes of one.
    count: u64,
    index: u64,
    /// Rows of the weight, elements of each, and bytes of an element.
    weights: u64,
    width: u64,
    element: u64,
}

/// Whether it is counted how often each index occurs.
#[derive(PartialEq, Eq)]
enum Counts {
    Made,
    None,
}

/// Sorting the indices, then summing the rows of each index in parts (Embedding.cu;
/// EmbeddingBackwardKernel.cu, `embedding_backward_cuda_kernel`).
fn sorted(rows: &Rows, counts: Counts) -> Vec<Ask> {
    let &Rows { count, index, weights, width, element } = rows;
    let numbers = |n: u64| Ask::Hold(Bytes(n * index));
    // Sorted indices, original positions, positions to sort.
    let mut asks = vec![numbers(count), numbers(count), numbers(count)];
    asks.extend(brief(radix_scratch(count, index, index, 64)));
    asks.push(Ask::Free);
    if counts == Counts::Made {
        // Found by two scans.
        asks.push(numbers(count));
        asks.extend([brief(SCAN), brief(SCAN)].concat());
    }
    let segments = count.min(weights);
    let partials = count / 10 + segments;
    asks.push(Ask::Output(Bytes(weights * width * element)));
    // Offsets of the segments, found with the unique indices.
    asks.extend([numbers(count), numbers(1), numbers(count)]);
    asks.extend(brief(SCAN));
    asks.push(Ask::Free);
    // Partial sums of each segment, and their offsets.
    asks.extend([numbers(segments), numbers(segments)]);
    asks.extend(brief(SCAN));
    asks.extend([numbers(1), numbers(partials)]);
    asks.push(Ask::Hold(Bytes(partials * width * 4)));
    asks
}

/// `mode` of an embedding bag that takes the largest of its rows.
const MAX: &str = "2";

/// `_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, …)`: CUDA keeps the size of each
/// bag and the bag of each index for backward (aten/src/ATen/native/cuda/EmbeddingBag.cu,
/// `_embedding_bag_cuda`).
pub(crate) fn bag(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let (Some(weight), Some(indices), Some(offsets)) =
        (arguments.tensor(0), arguments.tensor(1), arguments.tensor(2))
    else {
        return;
    };
    let width = weight.dims.last().copied().unwrap_or(1);
    let sizes = Bytes(offsets.bytes());
    let output = Bytes(offsets.numel() * width * weight.dtype.size());
    let bags = Bytes(indices.bytes());
    let largest = Bytes(offsets.numel() * width * indices.dtype.size());
    let kept = if arguments.value(4) == Some(MAX) { vec![output, largest] } else { vec![output] };
    let escaping: Vec<usize> =
        draft.blocks_in(op).into_iter().filter(|&i| draft.escapes(i, op)).collect();
    let Some(&size) = escaping.iter().find(|&&i| draft.items[i].size == sizes) else { return };
    // The CPU's own bookkeeping gives way.
    let mut left = kept.clone();
    for &i in escaping.iter().filter(|&&i| i != size) {
        match left.iter().position(|&s| s == draft.items[i].size) {
            Some(n) => drop(left.remove(n)),
            None => draft.drop_block(i, name::EMBEDDING),
        }
    }
    let mut asks = vec![Ask::Output(sizes)];
    asks.extend(kept.into_iter().map(Ask::Output));
    lay_out(draft, op, &asks, name::EMBEDDING);
    let (alloc, free) = (draft.after(size), draft.items[size].free);
    draft.add(Addition { size: bags, alloc, free, role: Role::Activation, op }, name::EMBEDDING);
}

/// `_embedding_bag_backward(grad, indices, offsets, offset2bag, bag_size, maximum_indices,
/// num_weights, scale_grad_by_freq, mode, sparse, …)`: sums and means sort the indices, whatever their
/// number (EmbeddingBag.cu, `embedding_bag_backward_cuda_sum_avg`, `…_max`).
pub(crate) fn bag_backward(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let arguments = draft.profile.arguments(op);
    let (Some(grad), Some(indices)) = (arguments.tensor(0), arguments.tensor(1)) else { return };
    let Some(weights) = arguments.ints(6).and_then(|v| u64::try_from(*v.first()?).ok()) else {
        return;
    };
    if arguments.value(9) == Some("True") {
        return;
    }
    let (count, index) = (indices.numel(), indices.dtype.size());
    let width = grad.dims.last().copied().unwrap_or(1);
    let rows = Rows { count, index, weights, width, element: grad.dtype.size() };
    let mut asks = Vec::new();
    if !is_contiguous(grad) {
        asks.push(Ask::Hold(Bytes(grad.bytes())));
    }
    if arguments.value(8) == Some(MAX) {
        asks.push(Ask::Output(Bytes(weights * width * grad.dtype.size())));
    } else {
        asks.extend(sorted(&rows, Counts::None));
    }
    // Gradients only: what else escapes the operators within is the CPU's bookkeeping.
    lay_out(draft, op, &asks, name::EMBEDDING);
}

/// `embedding_renorm_(self, indices, max_norm, norm_type)`: CUDA sorts the indices to find each row
/// once, where the CPU makes one number a row (aten/src/ATen/native/cuda/Embedding.cu,
/// `embedding_renorm_cuda_`).
pub(crate) fn renorm(draft: &mut Draft<'_>, _: &Target, op: OpId) {
    let Some(indices) = draft.profile.arguments(op).tensor(1) else { return };
    let list = Ask::Hold(Bytes(indices.bytes()));
    let row = indices.dims.last().copied().unwrap_or(1) * indices.dtype.size();
    let mut asks = vec![list, list];
    asks.extend(brief(row));
    asks.extend([Ask::Free, list, Ask::Hold(Bytes(indices.dtype.size()))]);
    asks.extend(brief(SCAN));
    lay_out(draft, op, &asks, name::EMBEDDING);
}
