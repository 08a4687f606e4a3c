//! What-ifs about gradients: where they are cleared, and whether clearing frees them.

use crate::draft::{Draft, Position};
use crate::rules::name;
use crate::target::ZeroGradPlace;
use xmem_analyzer::{Phase, PhaseSpan, Role};
use xmem_types::{IterationId, Nanos};

/// Moves the clearing of gradients to `place` of the iteration after the one that made them.
///
/// In the paper's terms (xMem, section 3): position 0 is just before backward, position 1 the start
/// of the iteration.
pub(crate) fn move_zero_grad(draft: &mut Draft<'_>, place: ZeroGradPlace) {
    for i in gradients(draft) {
        let Some(made) = draft.items[i].iteration else { continue };
        let Some(free) = draft.items[i].free else { continue };
        // Gradients that are gone before their own step is over are not cleared by zero_grad.
        let cleared = draft.profile.phase_at(free.time).and_then(|s| s.iteration);
        if cleared.is_none_or(|c| c <= made) {
            continue;
        }
        let Some(time) = clearing(draft, IterationId(made.0 + 1), place) else { continue };
        let alloc = draft.items[i].alloc;
        let free = draft.after_position(Position::start(time));
        draft.retime(i, alloc, Some(free), name::ZERO_GRAD);
    }
}

/// With `set_to_none=False` the first iteration's gradients stay for ever; later ones are added
/// into them and live no longer than the backward node that made them.
pub(crate) fn keep_gradients(draft: &mut Draft<'_>) {
    for i in gradients(draft) {
        let item = &draft.items[i];
        let alloc = item.alloc;
        match item.iteration {
            Some(IterationId(0)) => draft.retime(i, alloc, None, name::SET_TO_NONE),
            Some(_) => {
                let profile = draft.profile;
                let path = item.op.into_iter().flat_map(|op| profile.tree.path(op));
                let node = path.filter(|&op| !profile.is_annotation(op)).last();
                let done = node.map_or(alloc.time, |op| profile.op_end(op));
                let free = draft.after_position(Position::end(done));
                draft.retime(i, alloc, Some(free), name::SET_TO_NONE);
            }
            None => {}
        }
    }
}

fn gradients(draft: &Draft<'_>) -> Vec<usize> {
    (0..draft.items.len())
        .filter(|&i| draft.live(i) && draft.items[i].role == Role::Gradient)
        .collect()
}

/// When an iteration would clear gradients.
fn clearing(draft: &Draft<'_>, iteration: IterationId, place: ZeroGradPlace) -> Option<Nanos> {
    // Phases are in order of their iterations; those of none come first.
    let phases = &draft.profile.phases;
    let first = phases.partition_point(|s| s.iteration < Some(iteration));
    let spans = || phases[first..].iter().take_while(move |s| s.iteration == Some(iteration));
    let start = |s: &PhaseSpan| s.start;
    match place {
        ZeroGradPlace::BeforeBackward => spans().find(|s| s.phase == Phase::Backward).map(start),
        ZeroGradPlace::IterationStart => spans().next().map(start),
    }
}
