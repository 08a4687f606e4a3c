//! What one operator asks for on CUDA, in order, laid over the blocks that it made on the CPU.

use crate::draft::{Addition, Draft, Position};
use xmem_analyzer::{Role, TensorArg};
use xmem_types::{Bytes, OpId};

/// One request of an operator's host code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// What the CPU makes too, of this size: its lifetime is the CPU's.
    Output(Bytes),
    /// Scratch, freed when the operator returns if not before.
    Hold(Bytes),
    /// The youngest scratch that is still held goes.
    Free,
}

/// Scratch that is gone before the next request.
pub(crate) fn brief(size: u64) -> [Ask; 2] {
    [Ask::Hold(Bytes(size)), Ask::Free]
}

/// Whether a tensor's elements lie in the order of its dimensions; so taken where strides were not
/// recorded.
pub(crate) fn is_contiguous(tensor: &TensorArg) -> bool {
    let mut next = 1;
    let dims = tensor.dims.iter().zip(&tensor.strides).rev().filter(|(d, _)| **d != 1);
    for (&dim, &stride) in dims {
        if stride.unsigned_abs() != next {
            return false;
        }
        next *= dim;
    }
    true
}

/// Gives `op` the requests `asks`: its outputs in that order, scratch between them, and none of the
/// scratch of the CPU's kernel.
pub(crate) fn lay_out(draft: &mut Draft<'_>, op: OpId, asks: &[Ask], rule: &'static str) {
    let blocks = draft.blocks_in(op);
    let (mut outputs, scratch): (Vec<usize>, Vec<usize>) =
        blocks.into_iter().filter(|&i| draft.live(i)).partition(|&i| draft.escapes(i, op));
    for i in scratch {
        draft.drop_block(i, rule);
    }
    let mut at = Position::start(draft.profile.op_start(op));
    let mut held: Vec<(Bytes, Position)> = Vec::new();
    for ask in asks {
        match *ask {
            Ask::Output(size) => {
                let found = outputs.iter().position(|&i| draft.items[i].size == size);
                let Some(output) = found.map(|n| outputs.remove(n)) else { continue };
                if draft.items[output].alloc < at {
                    let alloc = draft.after_position(at);
                    let free = draft.items[output].free;
                    draft.retime(output, alloc, free, rule);
                }
                draft.items[output].settled = true;
                at = draft.items[output].alloc;
            }
            Ask::Hold(size) => {
                at = draft.after_position(at);
                held.push((size, at));
            }
            Ask::Free => {
                let Some((size, alloc)) = held.pop() else { continue };
                at = draft.after_position(at);
                scratch_block(draft, op, size, (alloc, at), rule);
            }
        }
    }
    let end = Position::end(draft.profile.op_end(op));
    while let Some((size, alloc)) = held.pop() {
        let free = draft.after_position(end);
        scratch_block(draft, op, size, (alloc, free), rule);
    }
}

fn scratch_block(
    draft: &mut Draft<'_>,
    op: OpId,
    size: Bytes,
    (alloc, free): (Position, Position),
    rule: &'static str,
) {
    draft.add(Addition { size, alloc, free: Some(free), role: Role::Workspace, op }, rule);
}
