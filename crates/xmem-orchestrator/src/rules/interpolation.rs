//! Interpolation on the CPU may run in the channels-last order, between copies of its input and output. CUDA's
//! kernels read and write both orders as they are.
//!
//! The CPU takes that kernel for four channels or more where it is faster: with few threads, also for tensors in
//! the order of their dimensions. Tensors in other orders are left as recorded: CUDA copies them as well.

use crate::frame::call::Call;
use crate::frame::cuda::layout::is_contiguous;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "interpolation",
        summary: "interpolation makes no copies in another memory format on CUDA",
        source: "aten/src/ATen/native/cpu/UpSampleKernel.cpp `_use_vectorized_kernel_cond_2d`, `cpu_upsample_nearest_channels_last`; aten/src/ATen/native/cuda/UpSampleNearest2d.cu, UpSampleNearest3d.cu, UpSampleBilinear2d.cu, UpSampleBicubic2d.cu",
        operators: &[
            "aten::upsample_bicubic2d",
            "aten::upsample_bilinear2d",
            "aten::upsample_nearest2d",
            "aten::upsample_nearest3d",
        ],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    Outcome::of_innermost(call, |call| {
        let input = call.arguments().tensor(0)?;
        if !is_contiguous(input) {
            return None;
        }
        let mut plan = call.plan();
        plan.all_outputs();
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
            shows: "copies of input and output in channels-last order are the CPU's; a transposed input is copied",
            script: upsampling(),
            target: target(),
            requests: expect![[r#"
                copies of input and output in channels-last order are the CPU's; a transposed input is copied
                    + y 2097152 activation
                off + input 524288 temporary
                off + output 2097152 temporary
                off - output
                off - input
                    + z 2097152 activation
                    + input 524288 temporary
                    + output 2097152 temporary
                    - output
                    - input
                    - z
                    - y
            "#]],
        }]
    }

    fn upsampling() -> Script {
        let mut t = Script::default();
        t.iteration(0, |t| {
            let inputs = [(1, "y", "f32[16,128,8,8]"), (2, "z", "f32[16,128,8,8]:8192,64,1,8")];
            for (number, name, input) in inputs {
                let copy = |t: &mut Script, copy: &str, bytes| {
                    t.op("aten::contiguous", "f32[16,128,8,8] 2", |t| {
                        t.makes("aten::clone", "f32[16,128,8,8] 2", copy, bytes);
                    });
                };
                let arguments = format!("{input} (16,16) 2.0 2.0");
                t.op_seq(number, "aten::upsample_nearest2d", &arguments, |t| {
                    t.alloc(name, 2_097_152);
                    copy(t, "input", 524_288);
                    copy(t, "output", 2_097_152);
                    t.free("output input");
                });
            }
            t.node(2, "UpsampleNearest2DBackward0", |t| t.free("z"));
            t.node(1, "UpsampleNearest2DBackward0", |t| t.free("y"));
        });
        t
    }
}
