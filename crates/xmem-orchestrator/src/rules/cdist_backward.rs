//! `_cdist_backward(grad, x1, x2, p, cdist)`: CUDA writes one row for each pair of vectors and sums them.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "cdist-backward",
        summary: "the backward of cdist writes one row for each pair of vectors before it sums them",
        source: "aten/src/ATen/native/cuda/DistanceKernel.cu `cdist_backward_kernel_impl`",
        operators: &["aten::_cdist_backward"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    Outcome::of_innermost(call, |call| {
        let (x1, x2) = (call.arguments().tensor(1)?, call.arguments().tensor(2)?);
        let rows = x2.dims.iter().rev().nth(1).copied().unwrap_or(1);
        let mut plan = call.plan();
        plan.output(Count::bytes(x1));
        plan.hold(Count::bytes(x1) * rows);
        plan.finish();
        Some(())
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![Case {
            rule: RULE.name,
            shows: "a row for each pair of vectors",
            script: one_operator(
                "aten::_cdist_backward",
                "f32[8,200,50] f32[8,200,64] f32[8,50,64] 1 f32[8,200,50]",
                &[409_600],
            ),
            target: target(),
            requests: expect![[r#"
                    a row for each pair of vectors
                        + y0 409600 activation
                    on  + cdist-backward#1 20480000 workspace
                    on  - cdist-backward#1
                        - y0
                "#]],
        }]
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
