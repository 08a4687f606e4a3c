//! Operators on elements convert operands of another type as CUDA's kernels read them, where the CPU
//! makes a converted copy first.

use super::host_scalars::SCALAR;
use crate::frame::context::Context;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::Edits;
use crate::rule::Rule;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "promoted-operands",
        summary: "operands of another type are converted as CUDA's kernel reads them, where the CPU makes a converted copy",
        source: "aten/src/ATen/TensorIterator.cpp `promote_inputs_to_common_dtype`",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(drop_converted_operands),
};

/// Operators on elements that convert their operands to a common type.
const PROMOTING: &[&str] = &[
    "aten::add",
    "aten::add_",
    "aten::atan2",
    "aten::bitwise_and",
    "aten::bitwise_or",
    "aten::bitwise_xor",
    "aten::div",
    "aten::div_",
    "aten::eq",
    "aten::fmod",
    "aten::ge",
    "aten::gt",
    "aten::le",
    "aten::lt",
    "aten::maximum",
    "aten::minimum",
    "aten::mul",
    "aten::mul_",
    "aten::ne",
    "aten::pow",
    "aten::remainder",
    "aten::sub",
    "aten::sub_",
];

fn drop_converted_operands(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    for (id, block) in edits.blocks() {
        let Some(op) = block.op.filter(|_| edits.live(id)) else { continue };
        if block.size.get() <= SCALAR {
            continue;
        }
        let converts = cx.conversions.around(id, op);
        if converts.is_some_and(|o| PROMOTING.contains(&cx.profile.op_name(o))) {
            edits.drop_block(id);
        }
    }
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
                shows: "a mask times a float: no converted copy",
                script: promoted("aten::mul"),
                target: target(),
                requests: expect![[r#"
                    a mask times a float: no converted copy
                    off + copy 8192 temporary
                        + y 8192 activation
                    off - copy
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "a sum that converts does so on both devices",
                script: promoted("aten::sum"),
                target: target(),
                requests: expect![[r#"
                    a sum that converts does so on both devices
                        + copy 8192 temporary
                        + y 8192 activation
                        - copy
                        - y
                "#]],
            },
        ]
    }

    fn promoted(operator: &str) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, operator, "bool[64,32] f32[64,32]", |t| {
                t.op("aten::to", "bool[64,32] 6 False False -", |t| {
                    t.op("aten::_to_copy", "bool[64,32] 6 - - - False -", |t| {
                        t.makes("aten::empty_strided", "(64,32) (32,1) 6 0 - False", "copy", 8192);
                    });
                });
                t.alloc("y", 8192);
                t.free("copy");
            });
            t.node(1, "SomeBackward0", |_| ());
            t.free("y");
        });
        t
    }
}
