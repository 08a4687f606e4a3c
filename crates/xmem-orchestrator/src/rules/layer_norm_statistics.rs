//! `native_layer_norm(input, normalized_shape, weight, bias, eps)`: mean and reciprocal deviation of 16-bit
//! inputs are 32 bits wide.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;
use xmem_types::{BlockId, Bytes};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "layer-norm-statistics",
        summary: "layer norm of 16-bit inputs keeps mean and deviation in 32 bits",
        source: "aten/src/ATen/native/cuda/layer_norm_kernel.cu `layer_norm_cuda`",
        operators: &["aten::native_layer_norm"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    Outcome::of_innermost(call, |call| {
        let input = call.arguments().tensor(0).filter(|t| t.dtype.is_half())?;
        let shape = call.arguments().ints(1)?;
        let kept = input.dims.len().saturating_sub(shape.len());
        let rows: Count = input.dims[..kept].iter().copied().map(Count).product();
        let made = call.blocks().into_iter().filter(|&block| call.escapes(block));
        for statistic in made.skip(1).collect::<Vec<BlockId>>() {
            if call.edits.item(statistic).size() == Bytes::from(rows.of(input.dtype)) {
                call.edits.resize(statistic, (rows * 4).into());
            }
        }
        Some(())
    })
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
                shows: "bfloat16: mean and deviation of 32 bits",
                script: layer_norm("bf16[32,128,256]", 2_097_152, 8192),
                target: target(),
                requests: expect![[r#"
                    bfloat16: mean and deviation of 32 bits
                        + y 2097152 activation
                    on  + mean 16384 activation layer-norm-statistics
                    on  + rstd 16384 activation layer-norm-statistics
                    off + mean 8192 activation
                    off + rstd 8192 activation
                        - y
                        - mean
                        - rstd
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "float32: as on the CPU",
                script: layer_norm("f32[32,128,256]", 4_194_304, 16384),
                target: target(),
                requests: expect![[r#"
                    float32: as on the CPU
                        + y 4194304 activation
                        + mean 16384 activation
                        + rstd 16384 activation
                        - y
                        - mean
                        - rstd
                "#]],
            },
        ]
    }

    fn layer_norm(input: &str, bytes: u64, rows: u64) -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            let arguments = format!("{input} (256) bf16[256] bf16[256] 1e-5");
            t.op_seq(1, "aten::native_layer_norm", &arguments, |t| {
                t.alloc("y", bytes);
                t.alloc("mean", rows);
                t.alloc("rstd", rows);
            });
            t.node(1, "NativeLayerNormBackward0", |_| ());
            t.free("y mean rstd");
        });
        t
    }
}
