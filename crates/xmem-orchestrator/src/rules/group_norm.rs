//! Group normalization takes scales and sums per sample and channel for the length of the call.

use super::batch_norm::accumulator;
use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "group-norm",
        summary: "group norm takes scales and sums per sample and channel for the length of the call",
        source: "aten/src/ATen/native/cuda/group_norm_kernel.cu `GroupNormKernelImplInternal`, `GroupNormBackwardKernelImplInternal`",
        operators: &["aten::native_group_norm", "aten::native_group_norm_backward"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    Outcome::of_innermost(call, |call| match call.name() {
        "aten::native_group_norm" => forward(call),
        _ => backward(call),
    })
}

/// `native_group_norm(input, weight, bias, N, C, HxW, group, eps)`: scale and shift per sample and
/// channel (group_norm_kernel.cu, `GroupNormKernelImplInternal`).
fn forward(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let input = arguments.tensor(0)?;
    let [samples, channels, area] = sizes(call, 3)?;
    let affine = arguments.tensor(1).is_some() || arguments.tensor(2).is_some();
    if area == 1 || !affine {
        return None;
    }
    let scale = Count(samples) * channels * accumulator(input.dtype);
    let mut plan = call.plan();
    plan.all_outputs();
    plan.hold_each([scale, scale]);
    plan.finish();
    Some(())
}

/// `native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW, group, mask)`: sums per
/// sample and channel, factors per sample and channel and per group (group_norm_kernel.cu,
/// `GroupNormBackwardKernelImplInternal`).
fn backward(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let (input, mean) = (arguments.tensor(1)?, arguments.tensor(2)?);
    let [samples, channels, area] = sizes(call, 5)?;
    let wide = accumulator(input.dtype);
    let channel = Count(samples) * channels * wide;
    let group = Count::elements(mean) * wide;
    let mut plan = call.plan();
    plan.output(Count::bytes(input));
    if let Some(weight) = arguments.tensor(4) {
        plan.output_each([Count::bytes(weight); 2]);
    }
    plan.hold_each([channel, channel, group, group]);
    if area > 1 {
        plan.hold(channel);
    }
    plan.finish();
    Some(())
}

/// Samples, channels and the area of one channel, from the argument at `position` on.
fn sizes(call: &Call<'_, '_, '_>, position: usize) -> Option<[u64; 3]> {
    let number = |i: usize| u64::try_from(*call.arguments().ints(position + i)?.first()?).ok();
    Some([number(0)?, number(1)?, number(2)?])
}

#[cfg(test)]
pub(super) mod tests {
    use super::RULE;
    use crate::testing::{Case, Script, target};
    use expect_test::expect;

    pub(crate) fn cases() -> Vec<Case> {
        vec![Case {
            rule: RULE.name,
            shows: "scale and shift forward; sums and factors backward",
            script: group_norm(),
            target: target(),
            requests: expect![[r#"
                    scale and shift forward; sums and factors backward
                        + y 1105920 activation
                        + mean 128 activation
                        + rstd 128 activation
                    on  + group-norm#1 768 workspace
                    on  + group-norm#2 768 workspace
                    on  - group-norm#2
                    on  - group-norm#1
                        + gx 1105920 gradient
                        + gw 96 gradient
                        + gb 96 gradient
                    on  + group-norm#3 768 workspace
                    on  + group-norm#4 768 workspace
                    on  + group-norm#5 128 workspace
                    on  + group-norm#6 128 workspace
                    on  + group-norm#7 768 workspace
                    on  - group-norm#7
                    on  - group-norm#6
                    on  - group-norm#5
                    on  - group-norm#4
                    on  - group-norm#3
                        - y
                        - mean
                        - rstd
                        - gx
                        - gw
                        - gb
                "#]],
        }]
    }

    fn group_norm() -> Script {
        let mut t = Script::default();
        let x = "f32[8,24,40,36]";
        t.iteration(0, |t| {
            let arguments = format!("{x} f32[24] f32[24] 8 24 1440 4 1e-5");
            t.op_seq(1, "aten::native_group_norm", &arguments, |t| {
                t.alloc("y", 1_105_920);
                t.alloc("mean", 128);
                t.alloc("rstd", 128);
            });
            t.node(1, "NativeGroupNormBackward0", |t| {
                let arguments = format!("{x} {x} f32[8,4] f32[8,4] f32[24] 8 24 1440 4 (1,1,1)");
                t.op("aten::native_group_norm_backward", &arguments, |t| {
                    t.alloc("gx", 1_105_920);
                    t.alloc("gw", 96);
                    t.alloc("gb", 96);
                });
                t.free("y mean rstd");
            });
            t.free("gx gw gb");
        });
        t
    }
}
