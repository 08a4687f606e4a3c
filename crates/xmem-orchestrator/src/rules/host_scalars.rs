//! Numbers that Python wraps as 0-dimensional CPU tensors (`x + 1`, `torch.tensor(0.5)`) become kernel
//! arguments on CUDA and take no memory there.

use crate::frame::context::Context;
use crate::frame::definition::{Applies, RuleDefinition};
use crate::frame::draft::Edits;
use crate::rule::Rule;
use xmem_analyzer::{Phase, Residency};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "host-scalars",
        summary: "numbers wrapped as 0-dimensional CPU tensors become kernel arguments on CUDA",
        source: "aten/src/ATen/ScalarOps.cpp `wrapped_scalar_tensor`; aten/src/ATen/native/TensorIterator.cpp (CPU scalars)",
        operators: &[],
        covers: &[],
    },
    applies: Applies::AsPass(drop_numbers),
};

/// The largest block that can be a wrapped number, in bytes.
pub(crate) const SCALAR: u64 = 16;

fn drop_numbers(cx: &Context<'_>, edits: &mut Edits<'_, '_>) {
    for (id, block) in edits.blocks() {
        if block.size.get() > SCALAR || block.residency == Residency::HostOnly {
            continue;
        }
        let host = match block.op {
            None => block.phase != Phase::Init,
            Some(op) => cx.conversions.around(id, op).is_some(),
        };
        if host {
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
        vec![Case {
            rule: RULE.name,
            shows: "a Python number that a product takes",
            script: wrapped_number(),
            target: target(),
            requests: expect![[r#"
                    a Python number that a product takes
                    off + number 4 temporary
                        + y 8192 activation
                    off - number
                        + gx 8192 gradient
                        - y
                        - gx
                "#]],
        }]
    }

    /// `y = x * 0.5`: the number becomes a double, then the input's type.
    fn wrapped_number() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.op_seq(1, "aten::mul", "f32[64,32] 0.5", |t| {
                t.op("aten::mul", "f32[64,32] f64[]", |t| {
                    t.op("aten::to", "f64[] 6 False False -", |t| {
                        t.op("aten::_to_copy", "f64[] 6 - - - False -", |t| {
                            t.makes("aten::empty_strided", "() () 6 0 - False", "number", 4);
                        });
                    });
                    t.alloc("y", 8192);
                    t.free("number");
                });
            });
            t.node(1, "MulBackward0", |t| {
                t.makes("aten::mul", "f32[64,32] f32[]", "gx", 8192);
                t.free("y");
            });
            t.free("gx");
        });
        t
    }
}
