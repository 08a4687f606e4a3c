//! What one operator asks for on CUDA, in order, laid over the blocks that it made on the CPU.

use crate::doubt::SizeRange;
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
    /// Scratch whose size a library decides.
    Unsure(Bytes, SizeRange),
    /// The youngest scratch that is still held goes.
    Free,
}

/// Where requests are laid out.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// The operator that what is added belongs to.
    pub(crate) op: OpId,
    /// Where it begins.
    pub(crate) start: Position,
    /// Where scratch ends that is still held.
    pub(crate) end: Position,
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
    let start = Position::start(draft.profile.op_start(op));
    let end = Position::end(draft.profile.op_end(op));
    lay_out_in(draft, Window { op, start, end }, &mut outputs, asks, rule);
}

/// Lays `asks` over a window, where the blocks of `outputs` stay. Those that were asked for are taken
/// out of the list.
pub(crate) fn lay_out_in(
    draft: &mut Draft<'_>,
    window: Window,
    outputs: &mut Vec<usize>,
    asks: &[Ask],
    rule: &'static str,
) {
    let Window { op, start, end } = window;
    let mut at = start;
    let mut held: Vec<Held> = Vec::new();
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
                held.push(Held { size, range: None, alloc: at });
            }
            Ask::Unsure(size, range) => {
                at = draft.after_position(at);
                held.push(Held { size, range: Some(range), alloc: at });
            }
            Ask::Free => {
                let Some(scratch) = held.pop() else { continue };
                at = draft.after_position(at);
                scratch.add(draft, op, at, rule);
            }
        }
    }
    while let Some(scratch) = held.pop() {
        let free = draft.after_position(end);
        scratch.add(draft, op, free, rule);
    }
}

/// Scratch that has not been freed yet.
struct Held {
    size: Bytes,
    range: Option<SizeRange>,
    alloc: Position,
}

impl Held {
    fn add(self, draft: &mut Draft<'_>, op: OpId, free: Position, rule: &'static str) {
        let Self { size, range, alloc } = self;
        let new = Addition { size, alloc, free: Some(free), role: Role::Workspace, op };
        match range {
            Some(range) => {
                draft.add_uncertain(new, range, rule);
            }
            None => draft.add(new, rule),
        }
    }
}
