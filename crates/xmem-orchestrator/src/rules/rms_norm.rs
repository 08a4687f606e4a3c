//! `_fused_rms_norm(input, normalized_shape, weight, eps)`: one kernel instead of a chain of operators.
//!
//! The CPU computes it from `pow`, `mean`, `rsqrt` and `mul`, each with a result and a separate autograd
//! node (aten/src/ATen/native/layer_norm.cpp, `rms_norm_composite`). CUDA makes the output and one 32-bit
//! number a row, which backward needs; backward makes the gradients of input and weight and nothing else.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::frame::draft::{Addition, Edits};
use crate::rule::Rule;
use xmem_analyzer::{Role, TensorArg};
use xmem_types::{BlockId, Bytes, OpId};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "rms-norm",
        summary: "rms_norm is one kernel that keeps one number a row, instead of a chain of operators",
        source: "aten/src/ATen/native/layer_norm.cpp `rms_norm_symint`; aten/src/ATen/native/cuda/layer_norm_kernel.cu `_fused_rms_norm_cuda`, `_fused_rms_norm_backward_cuda`",
        operators: &["aten::_fused_rms_norm"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    match fuse(call) {
        Some(nodes) => Outcome::ReplacedNodes(nodes),
        None => Outcome::ReplacedInside,
    }
}

/// Replaces the chain; returns the backward nodes that are replaced with it.
fn fuse(call: &mut Call<'_, '_, '_>) -> Option<Vec<OpId>> {
    let arguments = call.arguments();
    let input = arguments.tensor(0)?;
    let normalized = arguments.ints(1).map_or(1, |shape| shape.len());
    let kept = input.dims.len().saturating_sub(normalized);
    let rows = input.dims[..kept].iter().copied().map(Count).product::<Count>() * 4;
    let made = call.blocks();
    let last_of = |call: &Call<'_, '_, '_>, size: Count| {
        let sized = |block: &BlockId| call.edits.recorded_size(*block) == size.into();
        made.iter().copied().filter(sized).rfind(|&block| call.escapes(block))
    };
    let output = last_of(call, Count::bytes(input))?;
    // The last number a row that is kept: what the CPU's backward needs of `rsqrt`.
    let reciprocal = last_of(call, rows);
    for &block in made.iter().filter(|&&block| block != output && Some(block) != reciprocal) {
        call.edits.drop_block(block);
    }
    call.edits.keep(output);
    let alloc = call.edits.after(output);
    match reciprocal {
        Some(reciprocal) => call.edits.move_alloc(reciprocal, alloc),
        None => {
            let (free, op) = (call.edits.after_op(call.op), call.op);
            let (size, role) = (rows.into(), Role::Temporary);
            call.edits.add(Addition { size, alloc, free, role, op });
        }
    }
    let nodes = call.nodes();
    backward(&mut call.edits, &nodes, input, arguments.tensor(2));
    Some(nodes)
}

/// Of all that the nodes made, the gradients stay: those blocks that outlive the last node.
fn backward(
    edits: &mut Edits<'_, '_>,
    nodes: &[OpId],
    input: &TensorArg,
    weight: Option<&TensorArg>,
) {
    let (Some(&first), Some(&last)) = (nodes.first(), nodes.last()) else { return };
    let profile = edits.profile();
    let mut made: Vec<BlockId> = nodes.iter().flat_map(|&n| edits.blocks_in(n)).collect();
    made.sort_unstable();
    made.dedup();
    let gradient = |of: &TensorArg, taken: Option<BlockId>| {
        made.iter().copied().rfind(|&block| {
            edits.item(block).size() == Bytes::from(Count::bytes(of))
                && edits.escapes(block, last)
                && Some(block) != taken
        })
    };
    let of_input = gradient(input, None);
    let of_weight = weight.and_then(|w| gradient(w, of_input));
    for &block in made.iter().filter(|&&b| Some(b) != of_input && Some(b) != of_weight) {
        edits.drop_block(block);
    }
    // Where the engine adds what flows around the layer, the kernel's result is a block of its own:
    // added into the other, or both into a third.
    let by = |block: BlockId| profile.block(block).op.map(|op| profile.op_name(op));
    let sum = of_input.filter(|&block| by(block) == Some("aten::add"));
    let flows = nodes.iter().any(|&n| profile.op_name(n).contains("PowBackward"));
    let separate = sum.is_some() || (flows && of_input.is_none());
    let start = edits.before(first);
    let mut plan = edits.plan(first, start, Role::Temporary);
    let result = separate.then(|| plan.take(Count::bytes(input)));
    for block in [of_input.filter(|_| sum.is_none()), of_weight, sum].into_iter().flatten() {
        plan.land(block);
    }
    plan.free_all(result);
    plan.finish();
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
                shows: "output and one number a row; backward the two gradients",
                script: rms_norm(Gradient::Passed),
                target: target(),
                requests: expect![[r#"
                    output and one number a row; backward the two gradients
                    off + square 4194304 temporary
                    off + mean 16384 temporary
                    off + reduction-buffer#1 336 workspace
                    off + reduction-buffer#2 4 workspace
                    off - reduction-buffer#1
                    off - reduction-buffer#2
                    off - square
                    off + rstd 16384 activation
                    off - mean
                    off + normal 4194304 activation
                        + y 4194304 activation
                    on  + rstd 16384 activation rms-norm
                    on  + gx 4194304 gradient rms-norm
                    on  + gw 1024 gradient rms-norm
                    off + g1 4194304 temporary
                    off + g2 4194304 temporary
                    off + gw 1024 gradient
                    off + reduction-buffer#3 8388608 workspace
                    off + reduction-buffer#4 8 workspace
                    off - reduction-buffer#3
                    off - reduction-buffer#4
                    off - g2
                    off - normal
                    off + g3 4194304 temporary
                    off + g4 16384 temporary
                    off - g1
                        - rstd
                    off + gx 4194304 gradient
                    off - g3
                    off - g4
                        - gx
                        - gw
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "beside a residual connection: the kernel's gradient is added into the other",
                script: rms_norm(Gradient::Added),
                target: target(),
                requests: expect![[r#"
                    beside a residual connection: the kernel's gradient is added into the other
                    off + square 4194304 temporary
                    off + mean 16384 temporary
                    off + reduction-buffer#1 336 workspace
                    off + reduction-buffer#2 4 workspace
                    off - reduction-buffer#1
                    off - reduction-buffer#2
                    off - square
                    off + rstd 16384 activation
                    off - mean
                    off + normal 4194304 activation
                        + y 4194304 activation
                    on  + rstd 16384 activation rms-norm
                    on  + rms-norm#1 4194304 temporary
                    on  + gw 1024 gradient rms-norm
                    on  - rms-norm#1
                    off + g1 4194304 temporary
                    off + g2 4194304 temporary
                    off + gw 1024 gradient
                    off + reduction-buffer#3 8388608 workspace
                    off + reduction-buffer#4 8 workspace
                    off - reduction-buffer#3
                    off - reduction-buffer#4
                    off - g2
                    off - normal
                    off + g3 4194304 temporary
                    off + g4 16384 temporary
                    off - g1
                        - rstd
                    off + gx 4194304 temporary
                    off - g3
                    off - g4
                    off - gx
                        - gw
                        - y
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "without autograd: the number a row goes at once",
                script: rms_norm_without_autograd(),
                target: target(),
                requests: expect![[r#"
                    without autograd: the number a row goes at once
                        + y 4194304 input
                    on  + rms-norm#1 16384 temporary
                    on  - rms-norm#1
                        + z 4194304 activation
                        - y
                        - z
                "#]],
            },
        ]
    }

    /// The fate of the input's gradient.
    #[derive(PartialEq, Eq)]
    enum Gradient {
        /// It continues to the operator before.
        Passed,
        /// The engine adds it into the gradient that came around the layer.
        Added,
    }

    /// The chain of operators that the CPU runs, and its backward.
    fn rms_norm(gradient: Gradient) -> Script {
        let mut t = Script::default();
        let (x, bytes) = ("f32[32,128,256]", 4_194_304);
        t.iteration(0, |t| {
            t.op("aten::_fused_rms_norm", &format!("{x} (256) f32[256] -"), |t| {
                t.makes_seq(1, "aten::pow", x, "square", bytes);
                t.makes_seq(2, "aten::mean", x, "mean", 16384);
                t.free("square");
                t.makes_seq(3, "aten::rsqrt", "f32[32,128,1]", "rstd", 16384);
                t.free("mean");
                t.makes_seq(4, "aten::mul", x, "normal", bytes);
                t.makes_seq(5, "aten::mul", x, "y", bytes);
            });
            t.node(5, "MulBackward0", |t| {
                t.makes("aten::mul", x, "g1", bytes);
                t.makes("aten::mul", x, "g2", bytes);
                t.makes("aten::sum", &format!("{x} (0,1) False -"), "gw", 1024);
                t.free("g2 normal");
            });
            t.node(4, "MulBackward0", |t| {
                t.makes("aten::mul", x, "g3", bytes);
                t.makes("aten::sum", &format!("{x} (2) True -"), "g4", 16384);
                t.free("g1 rstd");
            });
            t.node(1, "PowBackward0", |t| {
                t.makes("aten::mul", x, "gx", bytes);
                t.free("g3 g4");
                if gradient == Gradient::Added {
                    t.free("gx");
                }
            });
            if gradient == Gradient::Passed {
                t.free("gx");
            }
            t.free("gw y");
        });
        t
    }

    fn rms_norm_without_autograd() -> Script {
        let mut t = Script::default();
        let (x, bytes) = ("f32[32,128,256]", 4_194_304);
        t.iteration(0, |t| {
            t.op("aten::_fused_rms_norm", &format!("{x} (256) f32[256] -"), |t| {
                t.makes("aten::pow", x, "square", bytes);
                t.makes("aten::rsqrt", "f32[32,128,1]", "rstd", 16384);
                t.free("square");
                t.makes("aten::mul", x, "y", bytes);
                t.free("rstd");
            });
            t.makes_seq(1, "aten::mul", x, "z", bytes);
            t.node(1, "MulBackward0", |_| ());
            t.free("y z");
        });
        t
    }
}
