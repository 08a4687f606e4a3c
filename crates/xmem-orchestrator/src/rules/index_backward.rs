//! `_index_put_impl_(self, indices, values, accumulate, unsafe)` with `accumulate`, as in the backward of
//! `x[indices]`: CUDA turns the indices into one linear index and sorts it. Without `accumulate` there is no
//! scratch.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::cuda::layout::is_contiguous;
use crate::frame::cuda::radix_sort;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;
use xmem_analyzer::TensorArg;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "index-backward",
        summary: "writing through repeated indices with accumulation (the backward of indexing) sorts them, with buffers",
        source: "aten/src/ATen/native/cuda/Indexing.cu `index_put_with_sort_kernel`",
        operators: &["aten::_index_put_impl_"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

/// Bytes of an index.
const INDEX: u64 = 8;

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    Outcome::of_innermost(call, accumulate)
}

/// aten/src/ATen/native/cuda/Indexing.cu, `index_put_with_sort_kernel`; IndexingUtils.cuh and
/// TensorAdvancedIndexingUtils.h, `computeLinearIndex`.
fn accumulate(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let (to, values) = (arguments.tensor(0)?, arguments.tensor(2)?);
    if arguments.value(3) != Some("True") {
        return None;
    }
    let checked = arguments.value(4) == Some("False");
    let Written { indexed, count, rows } = written(to, values);
    let numbers = count * INDEX;
    let mut plan = call.plan();
    if checked {
        // The smallest and the largest of each index.
        for _ in 0..2 * indexed {
            let extreme = plan.take(Count(INDEX));
            plan.touch(Count(1));
            plan.free(extreme);
        }
    }
    // Per index: wrapped around, times the stride; all but the first are added to that one.
    plan.hold(numbers);
    plan.touch(numbers);
    for _ in 1..indexed {
        let next = plan.take(numbers);
        plan.touch(numbers);
        plan.free(next);
    }
    if !is_contiguous(values) {
        plan.hold(Count::bytes(values));
    }
    // Sorted index, original position, positions to sort.
    plan.hold_each([numbers; 3]);
    let bits = u64::BITS - rows.get().leading_zeros();
    plan.touch(radix_sort::scratch(count, INDEX, INDEX, bits));
    plan.finish();
    Some(())
}

/// The part of a tensor that an assignment writes to.
struct Written {
    /// Dimensions of the tensor that have an index.
    indexed: usize,
    /// Elements of each index.
    count: Count,
    /// Places that an index can name.
    rows: Count,
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
        count: values[before..].iter().copied().map(Count).product(),
        rows: to.iter().copied().map(Count).product(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;
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
            assert_eq!((found.indexed, found.count), (indexed, Count(count)), "{to:?} {values:?}");
        }
    }

    pub(crate) fn cases() -> Vec<Case> {
        vec![
            Case {
                rule: RULE.name,
                shows: "5000 indices: linear index, sorted index and positions, radix sort",
                script: one_operator(
                    "aten::_index_put_impl_",
                    "f32[2000,64] - f32[5000,64] True True",
                    &[],
                ),
                target: target(),
                requests: expect![[r#"
                    5000 indices: linear index, sorted index and positions, radix sort
                    on  + index-backward#1 40000 workspace
                    on  + index-backward#2 40000 workspace
                    on  - index-backward#2
                    on  + index-backward#3 40000 workspace
                    on  + index-backward#4 40000 workspace
                    on  + index-backward#5 40000 workspace
                    on  + index-backward#6 87039 workspace
                    on  - index-backward#6
                    on  - index-backward#5
                    on  - index-backward#4
                    on  - index-backward#3
                    on  - index-backward#1
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "without accumulation: nothing",
                script: one_operator(
                    "aten::_index_put_impl_",
                    "f32[2000,64] - f32[5000,64] False True",
                    &[],
                ),
                target: target(),
                requests: expect![[r#"
                    without accumulation: nothing
                "#]],
            },
        ]
    }

    fn one_operator(operator: &str, arguments: &str, outputs: &[u64]) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, operator, arguments, |t| {
                for (i, &bytes) in outputs.iter().enumerate() {
                    t.alloc(&format!("y{i}"), bytes);
                }
            });
            t.node(1, "SomeBackward0", |_| ());
            for i in 0..outputs.len() {
                t.free(&format!("y{i}"));
            }
        });
        t
    }
}
