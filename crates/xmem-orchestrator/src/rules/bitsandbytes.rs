//! Operators of bitsandbytes: steps of its optimizers, and conversions to and from its types of 8 and 4 bits. On CUDA
//! each is one kernel that needs nothing but its outputs. On the CPU they are made of operators of PyTorch, with
//! copies in 32 bits.

use crate::frame::call::Call;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "bitsandbytes",
        summary: "a step of an optimizer of bitsandbytes, and a conversion to or from its types, is one kernel without copies",
        source: "bitsandbytes/backends/cuda/ops.py `_optimizer_update_8bit_blockwise_impl`, `_optimizer_update_32bit_impl`, `quantize_blockwise`, `_dequantize_4bit_impl` (0.50)",
        operators: &[
            "bitsandbytes::dequantize_4bit",
            "bitsandbytes::dequantize_blockwise",
            "bitsandbytes::optimizer_update_32bit",
            "bitsandbytes::optimizer_update_8bit_blockwise",
            "bitsandbytes::quantize_4bit",
            "bitsandbytes::quantize_blockwise",
        ],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    let mut plan = call.plan();
    plan.all_outputs();
    plan.finish();
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
            shows: "a step makes no copies; a conversion makes its outputs",
            script: steps(),
            target: target(),
            requests: expect![[r#"
                a step makes no copies; a conversion makes its outputs
                    + w 262144 input
                off + wide 262144 temporary
                off + product 262144 temporary
                off - wide
                off - product
                    + codes 65536 temporary
                    + absmax 1024 temporary
                    - codes
                    - absmax
            "#]],
        }]
    }

    fn steps() -> Script {
        let mut t = Script::default();
        t.parameter("w", &[1024, 64]);
        t.iteration(0, |t| {
            let step = "f32[1024,64] f32[1024,64] u8[1024,64]";
            t.op("bitsandbytes::optimizer_update_8bit_blockwise", step, |t| {
                t.op(
                    "bitsandbytes::dequantize_blockwise",
                    "u8[1024,64] f32[256] f32[256] 256 6",
                    |t| {
                        t.alloc("wide", 262_144);
                    },
                );
                t.makes("aten::mul", "f32[1024,64] f32[1024,64]", "product", 262_144);
                t.free("wide");
                t.free("product");
            });
            t.op("bitsandbytes::quantize_blockwise", "f32[1024,64] f32[256] 256", |t| {
                t.alloc("copy", 262_144);
                t.alloc("codes", 65_536);
                t.alloc("absmax", 1024);
                t.free("copy");
            });
            t.free("codes absmax");
        });
        t
    }
}
