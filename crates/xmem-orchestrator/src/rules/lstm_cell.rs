//! An LSTM cell (`nn.LSTMCell`), called step by step. On CUDA one kernel runs on the gates of input and state
//! and keeps a workspace of their size for its backward; both gates are kept, too, and their products have no
//! bias. The CPU makes the new state with a dozen operators and keeps what they need.

use super::gru_cell;
use crate::frame::call::Call;
use crate::frame::count::Count;
use crate::frame::definition::{Applies, Outcome, RuleDefinition};
use crate::rule::Rule;
use xmem_analyzer::Argument;
use xmem_types::{BlockId, Bytes};

pub(crate) static RULE: RuleDefinition = RuleDefinition {
    rule: Rule {
        name: "lstm-cell",
        summary: "an LSTM cell is one kernel on both gates, which are kept for backward with a workspace, and has no bias in its products",
        source: "aten/src/ATen/native/RNN.cpp `LSTMCell`; aten/src/ATen/native/cuda/RNN.cu `_thnn_fused_lstm_cell_cuda`; tools/autograd/derivatives.yaml `_thnn_fused_lstm_cell`",
        operators: &["aten::lstm_cell"],
        covers: &[],
    },
    applies: Applies::ToOperators(|_| Box::new(lower)),
};

/// The gates of an LSTM.
const GATES: u64 = 4;

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

/// The bytes of the state: of the second tensor of `hx`, whose type is the input's.
fn state(call: &Call<'_, '_, '_>) -> Option<Count> {
    let input = call.arguments().tensor(0)?;
    let Some(Argument::TensorList(states)) = call.arguments().list.get(1) else { return None };
    let elements: Count = states.get(1)?.iter().copied().map(Count).product();
    Some(elements.of(input.dtype))
}

fn fuse(call: &mut Call<'_, '_, '_>) -> Option<()> {
    let state = state(call)?;
    let of_size = |call: &Call<'_, '_, '_>, size: Count| -> Vec<BlockId> {
        let sized = |&block: &BlockId| {
            call.edits.live(block) && call.edits.item(block).size() == Bytes::from(size)
        };
        call.blocks().into_iter().filter(sized).collect()
    };
    let &[one, other] = of_size(call, state * GATES).as_slice() else { return None };
    // The new cell state is made first, by the product with the old one; the new state last.
    let states = of_size(call, state);
    let (&cell, &output) = (states.first()?, states.last()?);
    if cell == output || !call.escapes(cell) || !call.escapes(output) {
        return None;
    }

    let backward = call.escapes(one) || call.escapes(other);
    gru_cell::keep_gates(call, [one, other], &[cell, output], state * GATES);
    for block in [output, cell] {
        let alloc = call.edits.after(other);
        call.edits.move_alloc(block, alloc);
    }
    if backward {
        let last = call.edits.item(cell).free().max(call.edits.item(one).free());
        call.edits.move_free(cell, last);
    }
    Some(())
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
                shows: "both gates, a workspace and the new cell state stay for backward; no bias",
                script: cell(Autograd::On),
                target: target(),
                requests: expect![[r#"
                    both gates, a workspace and the new cell state stay for backward; no bias
                        + x 1024 input
                        + gates_h 4096 activation
                        + cublas-workspace#1 8519680 workspace
                    on  + gates_x 4096 temporary lstm-cell
                    on  + lstm-cell#1 4096 activation
                    on  + state 1024 temporary lstm-cell
                    on  + cell 1024 activation lstm-cell
                    on  - state
                    on  - gates_h
                    off + cublaslt-workspace#1 1048576 workspace
                    off + gates_x 4096 temporary
                        - gates_x
                    off + cell 1024 activation
                    off + product 1024 temporary
                    off - product
                    off + tanh 1024 activation
                    off + state 1024 temporary
                    off - state
                    off - tanh
                        - cell
                    on  - lstm-cell#1
                    off - gates_h
                        - x
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "without autograd nothing stays",
                script: cell(Autograd::Off),
                target: target(),
                requests: expect![[r#"
                    without autograd nothing stays
                        + wi 16384 input
                        + wh 16384 input
                        + x 1024 temporary
                    on  + gates_h 4096 temporary lstm-cell
                    off + gates_h 4096 temporary
                        + cublas-workspace#1 8519680 workspace
                    on  + gates_x 4096 temporary lstm-cell
                    on  + lstm-cell#1 4096 activation
                    on  + state 1024 temporary lstm-cell
                    on  + cell 1024 temporary lstm-cell
                    on  - gates_h
                    off + cublaslt-workspace#1 1048576 workspace
                    off + gates_x 4096 temporary
                        - gates_x
                    on  - lstm-cell#1
                    off + cell 1024 temporary
                    off + product 1024 temporary
                    off - product
                    off + tanh 1024 temporary
                    off + state 1024 temporary
                    off - gates_h
                    off - tanh
                        - state
                        - cell
                        - x
                "#]],
            },
            Case {
                rule: RULE.name,
                shows: "under autocast the operator calls itself: one cell, with the cast input",
                script: cell_under_autocast(),
                target: target(),
                requests: expect![[r#"
                    under autocast the operator calls itself: one cell, with the cast input
                        + x 1024 input
                        + cast_x 512 activation
                        + gates_h 2048 activation
                        + cublas-workspace#1 8519680 workspace
                    on  + gates_x 2048 temporary lstm-cell
                    on  + lstm-cell#1 2048 activation
                    on  + state 512 activation lstm-cell
                    on  + cell 512 activation lstm-cell
                    on  - gates_h
                    off + cublaslt-workspace#1 1048576 workspace
                    off + gates_x 2048 temporary
                        - gates_x
                    on  - lstm-cell#1
                    off + cell 512 activation
                    off + product 512 temporary
                    off - product
                    off + tanh 512 activation
                    off + state 512 activation
                    off - tanh
                    off - gates_h
                        - cast_x
                        - x
                        - cell
                        - state
                "#]],
            },
        ]
    }

    const CELL: &str = "f32[8,32] {8,32;8,32} f32[128,32] f32[128,32] f32[128] f32[128]";

    const LINEAR: &str = "f32[128] f32[8,32] f32[32,128] 1 1";

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Autograd {
        On,
        Off,
    }

    /// One step of a cell of 32 units with a batch of 8, as the CPU takes it.
    fn cell(autograd: Autograd) -> Script {
        let mut t = Script::default();
        t.parameter("wi", &[128, 32]);
        t.parameter("wh", &[128, 32]);
        t.iteration(0, |t| {
            t.makes("aten::randn", "(8,32)", "x", 1024);
            t.op("aten::lstm_cell", CELL, |t| {
                t.makes_seq(1, "aten::addmm", LINEAR, "gates_h", 4096);
                t.makes_seq(2, "aten::addmm", LINEAR, "gates_x", 4096);
                t.free("gates_x");
                t.makes_seq(3, "aten::mul", "f32[8,32] f32[8,32]", "cell", 1024);
                t.makes_seq(4, "aten::mul", "f32[8,32] f32[8,32]", "product", 1024);
                t.free("product");
                t.makes_seq(5, "aten::tanh", "f32[8,32]", "tanh", 1024);
                t.makes_seq(6, "aten::mul", "f32[8,32] f32[8,32]", "state", 1024);
                if autograd == Autograd::Off {
                    t.free("gates_h tanh");
                }
            });
            t.free("state");
            if autograd == Autograd::On {
                t.node(6, "MulBackward0", |t| t.free("tanh cell"));
                t.node(1, "AddmmBackward0", |t| t.free("gates_h"));
            } else {
                t.free("cell");
            }
            t.free("x");
        });
        t
    }

    /// The same under autocast: 512 bytes a state.
    fn cell_under_autocast() -> Script {
        let given = "f32[8,32] {8,32;8,32} f32[128,32] f32[128,32] f32[128] f32[128]";
        let cast = "bf16[8,32] {8,32;8,32} bf16[128,32] bf16[128,32] bf16[128] bf16[128]";
        let linear = "bf16[128] bf16[8,32] bf16[32,128] 1 1";
        let mut t = Script::default();
        t.iteration(0, |t| {
            t.makes("aten::randn", "(8,32)", "x", 1024);
            t.op("aten::lstm_cell", given, |t| {
                t.makes_seq(1, "aten::_to_copy", "f32[8,32] 15 - - - False -", "cast_x", 512);
                t.op("aten::lstm_cell", cast, |t| {
                    let value = "bf16[8,32] bf16[8,32]";
                    t.makes_seq(2, "aten::addmm", linear, "gates_h", 2048);
                    t.makes_seq(3, "aten::addmm", linear, "gates_x", 2048);
                    t.free("gates_x");
                    t.makes_seq(4, "aten::mul", value, "cell", 512);
                    t.makes_seq(5, "aten::mul", value, "product", 512);
                    t.free("product");
                    t.makes_seq(6, "aten::tanh", "bf16[8,32]", "tanh", 512);
                    t.makes_seq(7, "aten::mul", value, "state", 512);
                });
            });
            t.node(7, "MulBackward0", |t| t.free("tanh"));
            t.node(2, "AddmmBackward0", |t| t.free("gates_h cast_x"));
            t.free("x cell state");
        });
        t
    }
}
