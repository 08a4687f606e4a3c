//! The order in which rules are applied.

use crate::draft::Draft;
use crate::rules::name;
use crate::schedule::Schedule;
use crate::scratch::Casts;
use crate::target::Target;
use crate::{attention, gradients, placement, scratch, transfer, unmodelled, walk};
use xmem_analyzer::Profile;
use xmem_parallel::both;
use xmem_types::Diagnostics;

/// Applies every rule that is switched on, from the particular to the general.
pub(crate) fn lower(profile: &Profile, target: &Target) -> (Schedule, Diagnostics) {
    let mut notes = Diagnostics::default();
    let (mut draft, (casts, nodes_of)) =
        both(|| Draft::new(profile), || (Casts::of(profile), attention::nodes_of(profile)));
    let enabled = |rule: &str| !target.disabled.contains(rule);
    if enabled(name::HOST_ONLY) {
        scratch::host_only(&mut draft);
    }
    if enabled(name::HOST_SCALARS) {
        scratch::host_scalars(&mut draft, &casts);
    }
    if enabled(name::PROMOTED) {
        scratch::promoted_operands(&mut draft, &casts);
    }
    walk::operators(&mut draft, target, &nodes_of, &mut notes);
    if enabled(name::LEAF_SCRATCH) {
        scratch::leaf_scratch(&mut draft);
    }
    unmodelled::mark(&mut draft);
    if enabled(name::PREEXISTING) {
        placement::put_in_preexisting(&mut draft);
    }
    if enabled(name::MODEL_PLACEMENT) {
        placement::place_model(&mut draft);
    }
    if enabled(name::TRANSFER) {
        transfer::batches(&mut draft);
    }
    if let Some(place) = target.zero_grad.filter(|_| enabled(name::ZERO_GRAD)) {
        gradients::move_zero_grad(&mut draft, place);
    }
    if !target.set_to_none && enabled(name::SET_TO_NONE) {
        gradients::keep_gradients(&mut draft);
    }
    (draft.finish(), notes)
}
