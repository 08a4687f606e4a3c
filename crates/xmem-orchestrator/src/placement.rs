//! Where the model goes to the GPU, and what was there before the recording began.

use crate::draft::{Draft, Position};
use crate::rules::name;
use xmem_analyzer::{Phase, Residency, Role};
use xmem_types::Nanos;

/// Parameters and buffers are allocated together, when the model is moved: after the last of them
/// was made on the host, in the order in which they were made.
pub(crate) fn place_model(draft: &mut Draft<'_>) {
    let model: Vec<usize> = (0..draft.profile.blocks.len())
        .filter(|&i| {
            let item = &draft.items[i];
            let of_model = matches!(item.role, Role::Parameter | Role::Buffer);
            // What the loop makes once and keeps (the scale of a GradScaler) is no part of it.
            draft.live(i) && of_model && item.phase == Phase::Init
        })
        .collect();
    let Some(moved) = model.iter().map(|&i| draft.items[i].alloc.time).max() else { return };
    let at = Position::end(moved);
    for i in model {
        let alloc = draft.after_position(at);
        let free = draft.items[i].free;
        draft.retime(i, alloc, free, name::MODEL_PLACEMENT);
    }
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
