//! Cells of recurrent networks, called step by step.

use crate::draft::{Addition, Draft, Position};
use crate::rules::name;
use xmem_analyzer::{Profile, Role};
use xmem_types::{Bytes, OpId};

/// The operator of `nn.GRUCell`.
pub(crate) const GRU_CELL: &str = "aten::gru_cell";

/// Gates of a GRU.
const GATES: u64 = 3;
/// `GRU_WORKSPACE_MULTIPLIER` of aten/src/ATen/native/cuda/RNN.cu.
const WORKSPACE: u64 = 5;

/// A GRU cell: on CUDA one kernel on the gates of input and state, which keeps a workspace for its
/// backward; so do both gates (tools/autograd/derivatives.yaml, `_thnn_fused_gru_cell`). The CPU makes
/// the new state of a dozen operators and keeps what they need.
pub(crate) fn gru(draft: &mut Draft<'_>, op: OpId) {
    let Some(state) = draft.profile.arguments(op).tensor(1).map(|t| Bytes(t.bytes())) else {
        return;
    };
    let blocks: Vec<usize> = draft.blocks_in(op).into_iter().filter(|&i| draft.live(i)).collect();
    let of_size = |draft: &Draft<'_>, size: u64| -> Vec<usize> {
        let sized = |&i: &usize| draft.items[i].size == Bytes(size);
        blocks.iter().copied().filter(sized).collect()
    };
    let gates = of_size(draft, GATES * state.get());
    let made = of_size(draft, state.get());
    let output = made.into_iter().rev().find(|&i| draft.escapes(i, op));
    let (&[input_gates, state_gates], Some(output)) = (gates.as_slice(), output) else { return };

    let kept = [input_gates, state_gates, output];
    for i in blocks.into_iter().filter(|i| !kept.contains(i)) {
        draft.drop_block(i, name::GRU_CELL);
    }
    let end = Position::end(draft.profile.op_end(op));
    // One of the two holds what the CPU's backward needs, if there is one.
    let lasting = [input_gates, state_gates].into_iter().find(|&i| draft.escapes(i, op));
    let free = lasting.map_or(Some(end), |i| draft.items[i].free);
    for i in [input_gates, state_gates] {
        let alloc = draft.items[i].alloc;
        draft.retime(i, alloc, free, name::GRU_CELL);
        draft.items[i].settled = true;
    }
    let size = Bytes(WORKSPACE * state.get());
    let alloc = draft.after(state_gates);
    draft.add(Addition { size, alloc, free, role: Role::Activation, op }, name::GRU_CELL);
}

/// Whether an operator is part of a cell, whose gates CUDA computes without their bias.
pub(crate) fn is_within(profile: &Profile, op: OpId) -> bool {
    let Some(cell) = profile.symbol(GRU_CELL) else { return false };
    profile.tree.path(op).any(|o| profile.op_symbol(o) == cell)
}
