//! The order in which rules are applied.

use crate::draft::Draft;
use crate::rules::name;
use crate::schedule::Schedule;
use crate::target::Target;
use xmem_analyzer::{Phase, Profile, Role};
use xmem_types::Diagnostics;

pub(crate) fn lower(profile: &Profile, target: &Target) -> (Schedule, Diagnostics) {
    let _ = (target, name::LEAF_SCRATCH);
    let notes = Diagnostics::default();
    let mut draft = Draft::new(profile);
    for i in 0..profile.blocks.len() {
        let block = &profile.blocks[i];
        if block.phase == Phase::Init && block.role == Role::Temporary {
            draft.drop_block(i, name::HOST_ONLY);
        }
    }
    (draft.finish(), notes)
}
