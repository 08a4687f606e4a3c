//! A GRU cell (`nn.GRUCell`), called step by step. On CUDA one kernel runs on the gates of input and state and
//! keeps a workspace for its backward; both gates are kept, too, and their products have no bias. The CPU
//! makes the new state with a dozen operators and keeps what they need.

use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::frame::draft::Addition;
use crate::rule::Rule;
use xmem_analyzer::Role;
use xmem_types::{BlockId, Bytes};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "gru-cell",
        summary: "a GRU cell is one kernel on both gates, which are kept for backward with a workspace, and has no bias in its products",
        source: "aten/src/ATen/native/cuda/RNN.cu `_thnn_fused_gru_cell_cuda`; tools/autograd/derivatives.yaml `_thnn_fused_gru_cell`",
        operators: &["aten::gru_cell"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

/// The gates of a GRU.
const GATES: u64 = 3;
/// `GRU_WORKSPACE_MULTIPLIER` of aten/src/ATen/native/cuda/RNN.cu.
const WORKSPACE: u64 = 5;

fn lower(call: &mut Call<'_, '_, '_>) -> Outcome {
    // Autocast calls the operator again within itself, with the cast inputs.
    if call.calls_itself() {
        return Outcome::Unclaimed;
    }
    for &product in call.inside() {
        call.run_without_epilogue(product);
    }
    match fuse(call) {
        Some(()) => Outcome::Done,
        None => Outcome::Unclaimed,
    }
}

fn fuse(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let state = Count::bytes(call.arguments().tensor(1)?);
    let blocks: Vec<BlockId> =
        call.blocks().into_iter().filter(|&block| call.edits.live(block)).collect();
    let of_size = |call: &Call<'_, '_, '_>, size: Count| -> Vec<BlockId> {
        let sized = |&block: &BlockId| call.edits.item(block).size() == Bytes::from(size);
        blocks.iter().copied().filter(sized).collect()
    };
    let gates = of_size(call, state * GATES);
    let output = of_size(call, state).into_iter().rev().find(|&block| call.escapes(block))?;
    let &[input_gates, state_gates] = gates.as_slice() else { return None };

    keep_gates(call, [input_gates, state_gates], &[output], state * WORKSPACE);
    Some(())
}

/// Keeps the gates of input and state, with a workspace, for the backward of a cell that is one kernel, and its
/// outputs. The other blocks of the cell go.
pub(super) fn keep_gates(
    call: &mut Call<'_, '_, '_>,
    gates: [BlockId; 2],
    outputs: &[BlockId],
    workspace: Count,
) {
    for block in call.blocks() {
        if !gates.contains(&block) && !outputs.contains(&block) && call.edits.live(block) {
            call.edits.drop_block(block);
        }
    }
    // One of the two holds what the CPU's backward needs, if there is one.
    let lasting = gates.into_iter().find(|&block| call.escapes(block));
    let end = call.edits.after_op(call.op);
    let free = lasting.map_or(end, |block| call.edits.item(block).free());
    for block in gates {
        call.edits.move_free(block, free);
    }
    let (size, op) = (workspace.into(), call.op);
    let alloc = call.edits.after(gates[1]);
    call.edits.add(Addition { size, alloc, free, role: Role::Activation, op });
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
                shows: "both gates and a workspace stay for backward; the products have no bias",
                script: cell(Autograd::On),
                target: target(),
                requests: expect![[r#"
                    both gates and a workspace stay for backward; the products have no bias
                        + x 1024 input
                    on  + gates_x 3072 temporary gru-cell
                    off + gates_x 3072 temporary
                        + cublas-workspace#1 8519680 workspace
                    off + cublaslt-workspace#1 1048576 workspace
                        + gates_h 3072 activation
                    on  + gru-cell#1 5120 activation
                    off + new 1024 activation
                    off + candidate 1024 activation
                    off + difference 1024 activation
                        + state 1024 activation
                        - gates_x
                    off - candidate
                    off - new
                    off - difference
                        - gates_h
                    on  - gru-cell#1
                        - x
                        - state
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "without autograd nothing stays",
                script: cell(Autograd::Off),
                target: target(),
                requests: expect![[r#"
                    without autograd nothing stays
                        + wi 12288 input
                        + wh 12288 input
                        + x 1024 temporary
                    on  + gates_x 3072 temporary gru-cell
                    off + gates_x 3072 temporary
                        + cublas-workspace#1 8519680 workspace
                    on  + gates_h 3072 temporary gru-cell
                    on  + gru-cell#1 5120 activation
                    off + cublaslt-workspace#1 1048576 workspace
                    off + gates_h 3072 temporary
                    off + new 1024 temporary
                    off + candidate 1024 temporary
                    off + difference 1024 temporary
                        + state 1024 temporary
                        - gates_x
                        - gates_h
                    on  - gru-cell#1
                    off - new
                    off - candidate
                    off - difference
                        - x
                        - state
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "under autocast the inner call counts, once",
                script: cell_under_autocast(),
                target: target(),
                requests: expect![[r#"
                    under autocast the inner call counts, once
                        + x 1024 input
                        + cast_x 512 activation
                    on  + gates_x 1536 temporary gru-cell
                    off + gates_x 1536 temporary
                        + cublas-workspace#1 8519680 workspace
                    off + cublaslt-workspace#1 1048576 workspace
                        + gates_h 1536 activation
                    on  + gru-cell#1 2560 activation
                    off + new 512 activation
                        + state 512 activation
                        - gates_x
                    off - new
                        - gates_h
                    on  - gru-cell#1
                        - cast_x
                        - x
                        - state
                "#]],
            },
        ]
    }

    const CELL: &str = "f32[8,32] f32[8,32] f32[96,32] f32[96,32] f32[96] f32[96]";

    const LINEAR: &str = "f32[96] f32[8,32] f32[32,96] 1 1";

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Autograd {
        On,
        Off,
    }

    /// One step of a cell of 32 units with a batch of 8, as the CPU takes it.
    fn cell(autograd: Autograd) -> Script {
        let mut t = Script::default();
        t.parameter("wi", &[96, 32]);
        t.parameter("wh", &[96, 32]);
        t.iteration(0, |t| {
            t.makes("aten::randn", "(8,32)", "x", 1024);
            t.op("aten::gru_cell", CELL, |t| {
                t.makes_seq(1, "aten::addmm", LINEAR, "gates_x", 3072);
                t.makes_seq(2, "aten::addmm", LINEAR, "gates_h", 3072);
                t.makes_seq(3, "aten::clone", "f32[8,32] -", "new", 1024);
                t.makes_seq(4, "aten::add", "f32[8,32] f32[8,32] 1", "candidate", 1024);
                t.makes_seq(5, "aten::sub", "f32[8,32] f32[8,32] 1", "difference", 1024);
                t.makes_seq(6, "aten::clone", "f32[8,32] -", "state", 1024);
                t.free("gates_x");
                if autograd == Autograd::Off {
                    t.free("gates_h new candidate difference");
                }
            });
            if autograd == Autograd::On {
                t.node(4, "TanhBackward0", |t| t.free("candidate new difference"));
                t.node(2, "AddmmBackward0", |t| t.free("gates_h"));
            }
            t.free("x state");
        });
        t
    }

    /// The same step under autocast in bfloat16, with a state that an earlier step left.
    fn cell_under_autocast() -> Script {
        let cast = "bf16[8,32] bf16[8,32] bf16[96,32] bf16[96,32] bf16[96] bf16[96]";
        let linear = "bf16[96] bf16[8,32] bf16[32,96] 1 1";
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.makes("aten::randn", "(8,32)", "x", 1024);
            let given = "f32[8,32] bf16[8,32] f32[96,32] f32[96,32] f32[96] f32[96]";
            t.op("aten::gru_cell", given, |t| {
                t.makes_seq(1, "aten::_to_copy", "f32[8,32] 15 - - - False -", "cast_x", 512);
                t.op("aten::gru_cell", cast, |t| {
                    t.makes_seq(2, "aten::addmm", linear, "gates_x", 1536);
                    t.makes_seq(3, "aten::addmm", linear, "gates_h", 1536);
                    t.makes_seq(4, "aten::add", "bf16[8,32] bf16[8,32] 1", "new", 512);
                    t.makes_seq(5, "aten::clone", "bf16[8,32] -", "state", 512);
                    t.free("gates_x");
                });
            });
            t.node(4, "TanhBackward0", |t| t.free("new"));
            t.node(3, "AddmmBackward0", |t| t.free("gates_h"));
            t.node(2, "AddmmBackward0", |t| t.free("cast_x"));
            t.free("x state");
        });
        t
    }
}
