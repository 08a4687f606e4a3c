//! Where the model goes to the GPU, and what was there before the recording began.

use crate::draft::{Draft, Position};
use crate::rules::name;
use crate::transfer::Moves;
use xmem_analyzer::{Phase, Residency, Role, TransferKind};
use xmem_types::{Bytes, Nanos};

/// Parameters and buffers are allocated when the model is moved. Where the recorder marked it, that is
/// each at its mark; else all together, after the last of them was made on the host, in the order in
/// which they were made.
pub(crate) fn place_model(draft: &mut Draft<'_>) {
    let moves = Moves::of(draft.profile);
    let mut model: Vec<usize> = (0..draft.profile.blocks.len())
        .filter(|&i| {
            let item = &draft.items[i];
            let of_model = matches!(item.role, Role::Parameter | Role::Buffer);
            // What the loop makes once and keeps (the scale of a GradScaler) is no part of it.
            draft.live(i) && of_model && item.phase == Phase::Init
        })
        .collect();
    if let Some(first) = moves.first_arrival() {
        let marked = at_marks(draft, &moves, &model);
        // What is computed from what is on the GPU is there from birth.
        model.retain(|&i| {
            let block = &draft.profile.blocks[i];
            let made_there = block.residency == Residency::Device || block.alloc_time > first;
            moves.of_block(i).is_none() && !made_there
        });
        if let Some(last) = marked {
            together(draft, &model, last);
            return;
        }
    }
    let Some(moved) = model.iter().map(|&i| draft.items[i].alloc.time).max() else { return };
    together(draft, &model, Position::end(moved));
}

fn together(draft: &mut Draft<'_>, model: &[usize], at: Position) {
    for &i in model {
        let alloc = draft.after_position(at);
        let free = draft.items[i].free;
        draft.retime(i, alloc, free, name::MODEL_PLACEMENT);
    }
}

/// Allocates each tensor of the model where it is marked, in that order; also those that the trace
/// does not see on the host (a mapped file). Returns where the last one is.
fn at_marks(draft: &mut Draft<'_>, moves: &Moves, model: &[usize]) -> Option<Position> {
    let profile = draft.profile;
    let mut last = None;
    for transfer in profile.transfers.iter().filter(|t| t.kind == TransferKind::ToDevice) {
        let at = Position::start(transfer.time);
        match transfer.block {
            Some(id) => {
                let i = id.index();
                let here = moves.of_block(i) == Some(transfer.time);
                if here && model.binary_search(&i).is_ok() {
                    let alloc = draft.after_position(at);
                    let free = draft.items[i].free;
                    draft.retime(i, alloc, free, name::MODEL_PLACEMENT);
                    last = Some(alloc);
                }
            }
            None => {
                let Some(role) = moves.tensor(transfer) else { continue };
                if transfer.bytes > Bytes::ZERO {
                    let alloc = draft.after_position(at);
                    draft.add_unseen(transfer.bytes, role, (alloc, None), name::MODEL_PLACEMENT);
                    last = Some(alloc);
                }
            }
        }
    }
    last
}

/// Parameters, buffers, optimizer state and gradients that the trace shows only as arguments.
pub(crate) fn put_in_preexisting(draft: &mut Draft<'_>) {
    let cleared = clearing_of_first_gradients(draft).map(Position::start);
    for known in &draft.profile.preexisting {
        if known.residency == Residency::HostOnly {
            continue;
        }
        let free = if known.role == Role::Gradient { cleared } else { None };
        for _ in 0..known.count {
            draft.add_preexisting(known.size, known.role, free, name::PREEXISTING);
        }
    }
}

/// When gradients that were there before the recording began are freed: where they are first cleared
/// after the backward pass that added to them. Where no later pass makes new ones, clearing keeps them
/// (`zero_grad(set_to_none=False)`).
fn clearing_of_first_gradients(draft: &Draft<'_>) -> Option<Nanos> {
    let profile = draft.profile;
    let first = profile.phases.iter().find(|s| s.phase == Phase::Backward)?.start;
    let mut clearings = profile.phases.iter().filter(|s| s.phase == Phase::ZeroGrad);
    let cleared = clearings.find(|s| s.start > first)?.start;
    let mut later = profile.blocks.iter().filter(|b| b.alloc_time > cleared);
    later.any(|b| b.role == Role::Gradient).then_some(cleared)
}
