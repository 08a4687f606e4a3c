//! An LSTM cell (`nn.LSTMCell`), called step by step. On CUDA one kernel runs on the gates of input and state
//! and keeps a workspace of their size for its backward; both gates are kept, too, and their products have no
//! bias. The CPU makes the new state with a dozen operators and keeps what they need.

use crate::call::Call;
use crate::count::Count;
use crate::definition::{Applies, Outcome, RuleDefinition};
use crate::draft::Addition;
use crate::rule::Rule;
use xmem_analyzer::{Argument, Role};
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
    let blocks: Vec<BlockId> =
        call.blocks().into_iter().filter(|&block| call.edits.live(block)).collect();
    let of_size = |call: &Call<'_, '_, '_>, size: Count| -> Vec<BlockId> {
        let sized = |&block: &BlockId| call.edits.item(block).size() == Bytes::from(size);
        blocks.iter().copied().filter(sized).collect()
    };
    let gates = of_size(call, state * GATES);
    let &[input_gates, state_gates] = gates.as_slice() else { return None };
    // The new cell state is made first, by the product with the old one; the new state last.
    let states = of_size(call, state);
    let (&cell, &output) = (states.first()?, states.last()?);
    if cell == output || !call.escapes(cell) || !call.escapes(output) {
        return None;
    }

    let kept = [input_gates, state_gates, cell, output];
    for block in blocks.into_iter().filter(|block| !kept.contains(block)) {
        call.edits.drop_block(block);
    }
    // One of the two holds what the CPU's backward needs, if there is one.
    let lasting = [input_gates, state_gates].into_iter().find(|&block| call.escapes(block));
    let end = call.edits.after_op(call.op);
    let free = lasting.map_or(end, |block| call.edits.item(block).free());
    for block in [input_gates, state_gates] {
        call.edits.move_free(block, free);
    }
    let (size, op) = ((state * GATES).into(), call.op);
    let alloc = call.edits.after(state_gates);
    call.edits.add(Addition { size, alloc, free, role: Role::Activation, op });
    for block in [output, cell] {
        let alloc = call.edits.after(state_gates);
        call.edits.move_alloc(block, alloc);
    }
    if lasting.is_some() {
        let last = call.edits.item(cell).free().max(free);
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
}
