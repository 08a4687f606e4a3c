//! Softmax backward: CUDA computes `grad * output` into a temporary first, as wide as the gradient that it
//! makes.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;
use xmem_types::Bytes;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "softmax-backward",
        summary: "softmax backward computes grad * output into a temporary",
        source: "aten/src/ATen/native/cuda/SoftMax.cu `softmax_backward_cuda_out`",
        operators: &["aten::_softmax_backward_data"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    let Some(grad) = call.arguments().tensor(0) else { return Outcome::Unclaimed };
    let output = call.blocks().into_iter().find(|&block| call.escapes(block));
    let Some(output) = output else { return Outcome::Unclaimed };
    let size = Bytes::from(Count::bytes(grad)).max(call.edits.item(output).size());
    call.edits.add_call_scratch(size, output, call.op);
    Outcome::Done
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![Case {
            rule: RULE.name,
            shows: "grad * output, for the length of the call",
            script: softmax_backward(),
            target: target(),
            requests: expect![[r#"
                    grad * output, for the length of the call
                        + p 8192 activation
                        + gx 8192 gradient
                    on  + softmax-backward#1 8192 workspace
                    on  - softmax-backward#1
                        - p
                        - gx
                "#]],
        }]
    }

    fn softmax_backward() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.makes_seq(1, "aten::_softmax", "f32[64,32] -1 False", "p", 8192);
            t.node(1, "SoftmaxBackward0", |t| {
                let arguments = "f32[64,32] f32[64,32] -1 6";
                t.makes("aten::_softmax_backward_data", arguments, "gx", 8192);
                t.free("p");
            });
            t.free("gx");
        });
        t
    }
}
