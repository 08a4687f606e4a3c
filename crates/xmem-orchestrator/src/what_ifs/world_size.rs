//! Another number of ranks of a distributed job: what FSDP shards has other sizes.

use super::{Values, WhatIf};
use crate::change::{Change, WhatIfError};
use crate::resharding::Resharding;
use crate::schedule::Schedule;
use crate::target::Target;
use std::num::NonZeroU32;
use std::sync::Arc;
use xmem_analyzer::Profile;

pub(super) const WHAT_IF: WhatIf = WhatIf {
    name: "world-size",
    values: Values::Free("N", "a number of ranks"),
    help: "another number of ranks of a distributed job: shards of FSDP, and what is made of them, have the sizes that they \
           have with so many",
    change: |value| Some(Arc::new(WorldSize(value.parse().ok()?))),
};

#[derive(Debug)]
struct WorldSize(NonZeroU32);

impl Change for WorldSize {
    fn target(&self, profile: &Profile, target: &mut Target) -> Result<(), WhatIfError> {
        target.resharding = Some(Resharding::of(profile, self.0.get())?);
        Ok(())
    }

    fn schedule(&self, profile: &Profile, target: &Target, schedule: &mut Schedule) {
        if let Some(resharding) = &target.resharding {
            resharding.apply(schedule, profile);
        }
    }

    fn is_other_job(&self) -> bool {
        true
    }

    fn leaves_out_rest(&self) -> bool {
        true
    }

    fn words(&self, target: &Target) -> Option<String> {
        let resharding = target.resharding.as_ref()?;
        let (rank, recorded) = (resharding.rank(), resharding.recorded());
        Some(format!(
            "rank {} of {}; recorded as one of {recorded}, and shards have other sizes",
            rank.rank, rank.world_size
        ))
    }
}
