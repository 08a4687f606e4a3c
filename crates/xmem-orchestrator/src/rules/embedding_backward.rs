//! Gradients of embeddings. `embedding_dense_backward`: above 3,072 indices, or scaled by frequency, CUDA
//! sorts the rows; the sorted indices and the partial sums live until the operator returns. Embedding bags
//! keep the size of each bag and the bag of each index for backward, and sort whatever their number.
//! `embedding_renorm_` sorts the indices to find each row once.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::cuda::layout::is_contiguous;
use crate::frame::cuda::radix_sort;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::frame::draft::{Addition, Plan};
use crate::rule::Rule;
use xmem_analyzer::Role;
use xmem_types::{BlockId, Bytes};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "embedding-backward",
        summary: "embedding backward over more than 3072 indices sorts them, with buffers",
        source: "aten/src/ATen/native/cuda/Embedding.cu `embedding_dense_backward_cuda`; EmbeddingBackwardKernel.cu",
        operators: &[
            "aten::_embedding_bag",
            "aten::_embedding_bag_backward",
            "aten::embedding_dense_backward",
            "aten::embedding_renorm_",
        ],
        covers: &["aten::_embedding_bag_dense_backward"],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

/// Up to this many indices one kernel adds rows directly
/// (aten/src/ATen/native/cuda/Embedding.cu, `embedding_dense_backward_cuda`).
const DIRECT: u64 = 3072;

/// Bytes of the scratch of CUB's scans and of its selection of unique keys: recorded for up to 6400 keys.
const SCAN: Count = Count(1279);

/// `mode` of an embedding bag that takes the largest of its rows.
const MAX: &str = "2";

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    Outcome::of_innermost(call, |call| match call.name() {
        "aten::_embedding_bag" => bag(call),
        "aten::_embedding_bag_backward" => bag_backward(call),
        "aten::embedding_dense_backward" => backward(call),
        _ => renorm(call),
    })
}

/// `embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)`.
fn backward(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let (grad, indices) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let (count, index) = (Count::elements(indices), indices.dtype.size());
    let weights = number(call, 2)?;
    let scaled = arguments.value(4) == Some("True");
    if count <= Count(DIRECT) && !scaled {
        return None;
    }
    let width = grad.dims.last().copied().unwrap_or(1);
    let counts = if scaled { Counts::Made } else { Counts::None };
    let rows = Rows { count, index, weights, width, element: grad.dtype.size() };
    let copied = !is_contiguous(grad);
    let mut plan = call.plan();
    if copied {
        plan.hold(Count::bytes(grad));
    }
    sort_and_sum(&mut plan, &rows, counts);
    plan.finish();
    Some(())
}

fn number(call: &Call<'_, '_, '_>, position: usize) -> Option<u64> {
    u64::try_from(*call.arguments().ints(position)?.first()?).ok()
}

/// A gradient of rows.
struct Rows {
    /// Indices, and bytes of one.
    count: Count,
    index: u64,
    /// Rows of the weight, elements of each, and bytes of an element.
    weights: u64,
    width: u64,
    element: u64,
}

/// The counts of the occurrences of each index.
#[derive(PartialEq, Eq)]
enum Counts {
    Made,
    None,
}

/// Sorts the indices, then sums the rows of each index in parts (Embedding.cu;
/// EmbeddingBackwardKernel.cu, `embedding_backward_cuda_kernel`).
fn sort_and_sum(plan: &mut Plan<'_, '_, '_>, rows: &Rows, counts: Counts) {
    let &Rows { count, index, weights, width, element } = rows;
    let list = count * index;
    // Sorted indices, original positions, positions to sort.
    plan.hold_each([list, list]);
    let positions = plan.take(list);
    plan.touch(radix_sort::scratch(count, index, index, 64));
    plan.free(positions);
    if counts == Counts::Made {
        // Found by two scans.
        plan.hold(list);
        plan.touch(SCAN);
        plan.touch(SCAN);
    }
    let segments = count.min(Count(weights));
    let partials = count / 10 + segments;
    plan.output(Count(weights) * width * element);
    // Offsets of the segments, found with the unique indices.
    plan.hold_each([list, Count(index)]);
    let unique = plan.take(list);
    plan.touch(SCAN);
    plan.free(unique);
    // Partial sums of each segment, and their offsets.
    plan.hold_each([segments * index, segments * index]);
    plan.touch(SCAN);
    plan.hold_each([Count(index), partials * index, partials * width * 4]);
}

/// `_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, …)`
/// (aten/src/ATen/native/cuda/EmbeddingBag.cu, `_embedding_bag_cuda`).
fn bag(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let (weight, indices, offsets) =
        (arguments.tensor(0)?, arguments.tensor(1)?, arguments.tensor(2)?);
    let width = weight.dims.last().copied().unwrap_or(1);
    let sizes = Bytes::from(Count::bytes(offsets));
    let output = Bytes::from(Count::elements(offsets) * width * weight.dtype.size());
    let bags = Bytes::from(Count::bytes(indices));
    let largest = Bytes::from(Count::elements(offsets) * width * indices.dtype.size());
    let kept = if arguments.value(4) == Some(MAX) { vec![output, largest] } else { vec![output] };
    let escaping: Vec<BlockId> =
        call.blocks().into_iter().filter(|&block| call.escapes(block)).collect();
    let size_of = |call: &Call<'_, '_, '_>, block: BlockId| call.edits.item(block).size();
    let &size = escaping.iter().find(|&&block| size_of(call, block) == sizes)?;
    // The CPU's own bookkeeping gives way.
    let mut left = kept.clone();
    for &block in escaping.iter().filter(|&&block| block != size) {
        match left.iter().position(|&s| s == size_of(call, block)) {
            Some(n) => drop(left.remove(n)),
            None => call.edits.drop_block(block),
        }
    }
    let op = call.op;
    let mut plan = call.plan();
    plan.output(sizes);
    plan.output_each(kept);
    plan.finish();
    let (alloc, free) = (call.edits.after(size), call.edits.item(size).free());
    call.edits.add(Addition { size: bags, alloc, free, role: Role::Activation, op });
    Some(())
}

/// `_embedding_bag_backward(grad, indices, offsets, offset2bag, bag_size, maximum_indices,
/// num_weights, scale_grad_by_freq, mode, sparse, …)`: sums and means sort the indices, whatever their
/// number (EmbeddingBag.cu, `embedding_bag_backward_cuda_sum_avg`, `…_max`).
fn bag_backward(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let (grad, indices) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let weights = number(call, 6)?;
    if arguments.value(9) == Some("True") {
        return None;
    }
    let (count, index) = (Count::elements(indices), indices.dtype.size());
    let width = grad.dims.last().copied().unwrap_or(1);
    let rows = Rows { count, index, weights, width, element: grad.dtype.size() };
    // Gradients only: what else escapes the operators inside is the CPU's bookkeeping.
    let mut plan = call.plan();
    if !is_contiguous(grad) {
        plan.hold(Count::bytes(grad));
    }
    if arguments.value(8) == Some(MAX) {
        plan.output(Count(weights) * width * grad.dtype.size());
    } else {
        sort_and_sum(&mut plan, &rows, Counts::None);
    }
    plan.finish();
    Some(())
}

/// `embedding_renorm_(self, indices, max_norm, norm_type)`: CUDA sorts the indices to find each row
/// once, where the CPU makes one number a row (aten/src/ATen/native/cuda/Embedding.cu,
/// `embedding_renorm_cuda_`).
fn renorm(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let indices = call.arguments().tensor(1)?;
    let list = Count::bytes(indices);
    let row = Count(indices.dims.last().copied().unwrap_or(1)) * indices.dtype.size();
    let mut plan = call.plan();
    plan.hold(list);
    let sorted = plan.take(list);
    plan.touch(row);
    plan.free(sorted);
    plan.hold_each([list, Count(indices.dtype.size())]);
    plan.touch(SCAN);
    plan.finish();
    Some(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "3072 indices: rows are added directly",
                script: embedding_backward(3072),
                target: target(),
                requests: expect![[r#"
                    3072 indices: rows are added directly
                        + w 160000 parameter model-placement
                        + y 491520 activation
                        + gw 160000 gradient
                        - y
                        - gw
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "3073 indices: sorted, with nine buffers until the operator returns",
                script: embedding_backward(3073),
                target: target(),
                requests: expect![[r#"
                    3073 indices: sorted, with nine buffers until the operator returns
                        + w 160000 parameter model-placement
                        + y 491680 activation
                    on  + embedding-backward#1 24584 workspace
                    on  + embedding-backward#2 24584 workspace
                    on  + embedding-backward#3 24584 workspace
                    on  + embedding-backward#4 67583 workspace
                    on  - embedding-backward#4
                    on  - embedding-backward#3
                        + gw 160000 gradient
                    on  + embedding-backward#5 24584 workspace
                    on  + embedding-backward#6 8 workspace
                    on  + embedding-backward#7 24584 workspace
                    on  + embedding-backward#8 1279 workspace
                    on  - embedding-backward#8
                    on  - embedding-backward#7
                    on  + embedding-backward#9 8000 workspace
                    on  + embedding-backward#10 8000 workspace
                    on  + embedding-backward#11 1279 workspace
                    on  - embedding-backward#11
                    on  + embedding-backward#12 8 workspace
                    on  + embedding-backward#13 10456 workspace
                    on  + embedding-backward#14 209120 workspace
                    on  - embedding-backward#14
                    on  - embedding-backward#13
                    on  - embedding-backward#12
                    on  - embedding-backward#10
                    on  - embedding-backward#9
                    on  - embedding-backward#6
                    on  - embedding-backward#5
                    on  - embedding-backward#2
                    on  - embedding-backward#1
                        - y
                        - gw
                "#]],
            },
        ]
    }

    fn embedding_backward(indices: u64) -> Script {
        let mut t = Script::default();
        t.parameter("w", &[1000, 40]);
        t.iteration(0, |t| {
            let arguments = format!("f32[1000,40] i64[{indices}] -1 False False");
            t.makes_seq(1, "aten::embedding", &arguments, "y", indices * 160);
            t.node(1, "EmbeddingBackward0", |t| {
                let arguments = format!("f32[{indices},40] i64[{indices}] 1000 -1 False");
                t.makes("aten::embedding_dense_backward", &arguments, "gw", 160_000);
            });
            t.accumulate("f32[1000,40]");
            t.free("y gw");
        });
        t
    }
}
