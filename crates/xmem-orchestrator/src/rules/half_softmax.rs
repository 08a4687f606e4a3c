//! A softmax of float16 whose result is requested in float32 (autocast, or `softmax(x, dim, dtype=torch.float32)`):
//! one CUDA kernel reads float16 and writes float32, and its backward writes float16. The CPU casts the input
//! first, and its backward casts the gradient. Inputs in bfloat16 are cast on both devices.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;
use xmem_analyzer::DType;
use xmem_types::{BlockId, Bytes, OpId};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "half-softmax",
        summary: "a softmax of float16 with a result in float32 needs no cast: its kernels read and write both types",
        source: "aten/src/ATen/native/SoftMax.cpp `softmax`, `log_softmax`; aten/src/ATen/native/cuda/SoftMax.cu `softmax_backward_cuda_out`, `log_softmax_backward_cuda_out`",
        operators: &["aten::softmax", "aten::log_softmax"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

/// `at::ScalarType::Float` (c10/core/ScalarType.h).
const FLOAT: &str = "6";

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    match fuse(call) {
        Some(()) => Outcome::Done,
        None => Outcome::Unclaimed,
    }
}

/// `softmax(input, dim, dtype)`: the cast of the input goes, and the backward's gradient is narrow from the start.
fn fuse(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let arguments = call.arguments();
    let input = arguments.tensor(0).filter(|t| t.dtype == DType::F16)?;
    // Autocast calls the operator again within itself, and requests the type.
    if call.calls_itself() || arguments.value(2) != Some(FLOAT) {
        return None;
    }
    let (half, wide) = (Bytes::from(Count::bytes(input)), Bytes::from(Count::elements(input) * 4));
    let cast = made_by(call, call.op, "aten::_to_copy", wide)?;
    call.edits.drop_block(cast);
    let profile = call.profile();
    let nodes = call.nodes();
    let node = |name: &str| nodes.iter().copied().find(|&n| profile.op_name(n).contains(name));
    let (softmax, to) = (node("SoftmaxBackward")?, node("ToCopyBackward")?);
    let kernel = format!("aten::_{}_backward_data", call.name().trim_start_matches("aten::"));
    let gradient = made_by(call, softmax, &kernel, wide)?;
    let of_cast = made_by(call, to, "aten::_to_copy", half)?;
    let free = call.edits.item(of_cast).free();
    call.edits.resize(gradient, half);
    call.edits.move_free(gradient, free);
    call.edits.drop_block(of_cast);
    Some(())
}

/// The block of this size that an operator within `op` made.
fn made_by(call: &Call<'_, '_, '_>, op: OpId, operator: &str, size: Bytes) -> Option<BlockId> {
    let profile = call.profile();
    call.edits.blocks_in(op).into_iter().find(|&block| {
        let mut path = profile.op_path(profile.block(block)).take(3);
        call.edits.recorded_size(block) == size && path.any(|o| profile.op_name(o) == operator)
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
                shows: "float16: neither the input nor the gradient is cast",
                script: softmax("aten::softmax", "f16", "6"),
                target: target(),
                requests: expect![[r#"
                    float16: neither the input nor the gradient is cast
                        + x 4096 temporary
                    off + cast 8192 temporary
                        + p 8192 activation
                    off - cast
                        - x
                        + seed 8192 temporary
                    on  + g_cast 4096 temporary half-softmax
                    off + g_cast 8192 temporary
                        + softmax-backward#1 8192 workspace
                        - softmax-backward#1
                        - seed
                        - p
                    off + g_x 4096 temporary
                        - g_cast
                    off - g_x
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "the same of log_softmax",
                script: softmax("aten::log_softmax", "f16", "6"),
                target: target(),
                requests: expect![[r#"
                    the same of log_softmax
                        + x 4096 temporary
                    off + cast 8192 temporary
                        + p 8192 activation
                    off - cast
                        - x
                        + seed 8192 temporary
                    on  + g_cast 4096 temporary half-softmax
                    off + g_cast 8192 temporary
                        - seed
                        - p
                    off + g_x 4096 temporary
                        - g_cast
                    off - g_x
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "bfloat16: both are cast on both devices",
                script: softmax("aten::softmax", "bf16", "6"),
                target: target(),
                requests: expect![[r#"
                    bfloat16: both are cast on both devices
                        + x 4096 temporary
                        + cast 8192 temporary
                        + p 8192 activation
                        - cast
                        - x
                        + seed 8192 temporary
                        + g_cast 8192 temporary
                        + softmax-backward#1 8192 workspace
                        - softmax-backward#1
                        - seed
                        - p
                        + g_x 4096 temporary
                        - g_cast
                        - g_x
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "float16 to float64: both are cast on both devices",
                script: softmax("aten::softmax", "f16", "7"),
                target: target(),
                requests: expect![[r#"
                    float16 to float64: both are cast on both devices
                        + x 4096 temporary
                        + cast 16384 temporary
                        + p 16384 activation
                        - cast
                        - x
                        + seed 16384 temporary
                        + g_cast 16384 temporary
                        + softmax-backward#1 16384 workspace
                        - softmax-backward#1
                        - seed
                        - p
                        + g_x 4096 temporary
                        - g_cast
                        - g_x
                "#]],
            },
        ]
    }

    /// A softmax of 64 x 32 values under autocast, which calls it again within itself: 4096 bytes in 16 bits.
    fn softmax(name: &str, narrow: &str, dtype: &str) -> Script {
        let wide = if dtype == "7" { "f64" } else { "f32" };
        let bytes = if dtype == "7" { 16384 } else { 8192 };
        let value = format!("{narrow}[64,32]");
        let result = format!("{wide}[64,32]");
        let (forward, kernel) = match name {
            "aten::softmax" => ("aten::_softmax", "aten::_softmax_backward_data"),
            _ => ("aten::_log_softmax", "aten::_log_softmax_backward_data"),
        };
        let node = if name == "aten::softmax" { "SoftmaxBackward0" } else { "LogSoftmaxBackward0" };
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.makes_seq(1, "aten::add", &format!("{value} {value} 1"), "x", 4096);
            t.op_seq(2, name, &format!("{value} -1 -"), |t| {
                t.op_seq(2, name, &format!("{value} -1 {dtype}"), |t| {
                    t.op_seq(2, "aten::to", &format!("{value} {dtype} False False -"), |t| {
                        let copied = format!("{value} {dtype} - - - False -");
                        t.makes_seq(2, "aten::_to_copy", &copied, "cast", bytes);
                    });
                    t.makes_seq(3, forward, &format!("{result} -1 False"), "p", bytes);
                    t.free("cast");
                });
            });
            t.free("x");
            t.makes("aten::ones_like", &format!("{result} - - - False 1"), "seed", bytes);
            t.node(3, node, |t| {
                t.makes(kernel, &format!("{result} {result} -1 {dtype}"), "g_cast", bytes);
                t.free("seed p");
            });
            t.node(2, "ToCopyBackward0", |t| {
                let copied = format!("{result} 5 False False -");
                t.op("aten::to", &copied, |t| {
                    t.makes("aten::_to_copy", &format!("{result} 5 - - - False -"), "g_x", 4096);
                });
                t.free("g_cast");
            });
            t.node(1, "AddBackward0", |t| t.free("g_x"));
        });
        t
    }
}
