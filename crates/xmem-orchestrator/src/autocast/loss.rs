//! `cross_entropy_loss` under autocast.

use crate::attention::NodesOf;
use crate::draft::{Addition, Draft, Position};
use crate::rules::name::AUTOCAST_LOSS;
use xmem_analyzer::Role;
use xmem_types::{Bytes, OpId};

const LOSS: &str = "aten::cross_entropy_loss";

/// `cross_entropy_loss` on 16-bit logits.
///
/// The CPU's autocast lists the whole operator as float32 (aten/src/ATen/autocast_mode.cpp): the
/// logits are cast first, everything after is 32 bits wide. CUDA's list has its parts: the
/// log-softmax is asked for in the logits' own type and stays 16 bits wide, and `nll_loss` casts
/// its result, which it keeps for backward.
pub(crate) fn cross_entropy(draft: &mut Draft<'_>, nodes_of: &NodesOf, op: OpId) {
    let profile = draft.profile;
    let inside = profile.tree.descendants(op);
    let Some(logits) = profile.arguments(op).tensor(0).filter(|t| t.dtype.is_half()) else {
        return;
    };
    // Autocast calls the operator again within itself, with the cast inputs.
    if !inside.iter().any(|&o| profile.op_name(o) == LOSS) {
        return;
    }
    let (half, wide) = (Bytes(logits.bytes()), Bytes(logits.numel() * 4));
    let find = |draft: &Draft<'_>, within: OpId, size: Bytes, operator: &str| {
        draft.blocks_in(within).into_iter().find(|&i| {
            profile.blocks[i].size == size
                && profile.blocks[i].op.is_some_and(|o| {
                    profile.tree.path(o).take(3).any(|o| profile.op_name(o) == operator)
                })
        })
    };
    let Some(cast) = find(draft, op, wide, "aten::_to_copy") else { return };
    let Some(kept) = find(draft, op, wide, "aten::_log_softmax") else { return };
    let node = |name: &str| {
        let made = inside.iter().filter_map(|o| nodes_of.get(o)).flatten();
        made.copied().find(|&n| profile.op_name(n).contains(name))
    };
    let (loss, softmax, to) = (node("NllLoss"), node("LogSoftmax"), node("ToCopy"));
    draft.drop_block(cast, AUTOCAST_LOSS);
    draft.resize(kept, half, AUTOCAST_LOSS);
    let alloc = draft.after(kept);
    let free = Some(Position::end(profile.op_end(loss.unwrap_or(op))));
    draft.add(Addition { size: wide, alloc, free, role: Role::Activation, op }, AUTOCAST_LOSS);
    let (Some(loss), Some(softmax), Some(to)) = (loss, softmax, to) else { return };
    let gradients = (
        find(draft, loss, wide, "aten::nll_loss_backward"),
        find(draft, softmax, wide, "aten::_log_softmax_backward_data"),
        find(draft, to, half, "aten::_to_copy"),
    );
    let (Some(of_loss), Some(of_softmax), Some(of_cast)) = gradients else { return };
    // The cast's backward moves before that of the softmax.
    let start = Position::start(profile.op_start(softmax));
    let alloc = draft.after_position(start);
    let free = Some(Position::end(profile.op_end(softmax)));
    draft.add(
        Addition { size: half, alloc, free, role: Role::Temporary, op: softmax },
        AUTOCAST_LOSS,
    );
    let free = Some(draft.after_position(start));
    draft.retime(of_loss, draft.items[of_loss].alloc, free, AUTOCAST_LOSS);
    draft.resize(of_softmax, half, AUTOCAST_LOSS);
    let free = draft.items[of_cast].free;
    draft.retime(of_softmax, draft.items[of_softmax].alloc, free, AUTOCAST_LOSS);
    draft.drop_block(of_cast, AUTOCAST_LOSS);
}
