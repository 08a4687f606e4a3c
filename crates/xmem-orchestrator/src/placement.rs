//! Where the model goes to the GPU.

use crate::draft::{Draft, Position};
use crate::rules::name;
use xmem_analyzer::Role;

/// Parameters and buffers are allocated together, when the model is moved: after the last of them
/// was made on the host, in the order in which they were made.
pub(crate) fn place_model(draft: &mut Draft<'_>) {
    let model: Vec<usize> = (0..draft.profile.blocks.len())
        .filter(|&i| draft.live(i) && matches!(draft.items[i].role, Role::Parameter | Role::Buffer))
        .collect();
    let Some(moved) = model.iter().map(|&i| draft.items[i].alloc.time).max() else { return };
    let at = Position::end(moved);
    for i in model {
        let alloc = draft.after_position(at);
        let free = draft.items[i].free;
        draft.retime(i, alloc, free, name::MODEL_PLACEMENT);
    }
}
