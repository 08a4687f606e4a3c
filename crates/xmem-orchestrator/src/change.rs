//! What a what-if changes: the target of the lowering of a job, or the schedule after it.

use crate::resharding::ReshardingError;
use crate::schedule::Schedule;
use crate::target::Target;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;
use xmem_analyzer::Profile;

/// A value of a what-if, by what it changes.
pub(crate) trait Change: fmt::Debug + Send + Sync {
    /// Changes the target of the lowering of a job, or finds that the job cannot be changed.
    fn target(&self, _: &Profile, _: &mut Target) -> Result<(), WhatIfError> {
        Ok(())
    }

    /// Changes the schedule.
    fn schedule(&self, _: &Profile, _: &Target, _: &mut Schedule) {}

    /// Returns whether the requests are those of another job than the recorded one, so that peaks of the recording do not
    /// apply.
    fn is_other_job(&self) -> bool {
        false
    }

    /// Returns whether it changes what was recorded of the iterations alone, so that what follows them is left out.
    fn leaves_out_rest(&self) -> bool {
        false
    }

    /// What the answer says about it beside the other settings, if anything.
    fn words(&self, _: &Target) -> Option<String> {
        None
    }
}

/// A what-if with a value.
#[derive(Clone, Debug)]
pub struct ChosenWhatIf {
    name: &'static str,
    /// Its place among what-ifs, in the order in which they are applied.
    order: usize,
    value: String,
    change: Arc<dyn Change>,
}

/// A job that cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WhatIfError {
    /// To another number of ranks.
    #[error(transparent)]
    Resharding(#[from] ReshardingError),
    /// In its optimizer.
    #[error("{what_if} is a setting of {of}, and the recorded optimizer is {recorded}")]
    OtherOptimizer {
        /// The name of the what-if.
        what_if: &'static str,
        /// The optimizers that have it.
        of: &'static str,
        /// The classes of the recorded ones.
        recorded: String,
    },
    /// As it has been recorded.
    #[error("{what_if}: {problem}")]
    Recorded {
        /// The name of the what-if.
        what_if: &'static str,
        /// What the recording shows, and what to do.
        problem: &'static str,
    },
}

impl ChosenWhatIf {
    /// The what-if `name`, the one at `order` in the table, with a value.
    pub(crate) fn of_table(
        (name, order): (&'static str, usize),
        value: &str,
        change: Arc<dyn Change>,
    ) -> Self {
        Self { name, order, value: value.to_owned(), change }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The value, as it was given.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns whether the job is another one than the recorded one, so that peaks of the recording do not apply.
    #[must_use]
    pub fn is_other_job(&self) -> bool {
        self.change.is_other_job()
    }

    /// Returns whether it is about the recorded iterations alone.
    pub(crate) fn leaves_out_rest(&self) -> bool {
        self.change.leaves_out_rest()
    }

    /// What the answer says about it beside the other settings, if anything.
    #[must_use]
    pub fn words(&self, target: &Target) -> Option<String> {
        self.change.words(target)
    }

    pub(crate) fn change_schedule(
        &self,
        profile: &Profile,
        target: &Target,
        schedule: &mut Schedule,
    ) {
        self.change.schedule(profile, target, schedule);
    }
}

impl Target {
    /// The target with its what-ifs, for one job.
    ///
    /// # Errors
    /// If the job cannot be changed so.
    pub fn with_what_ifs(mut self, profile: &Profile) -> Result<Self, WhatIfError> {
        for chosen in self.what_ifs.clone() {
            chosen.change.target(profile, &mut self)?;
        }
        Ok(self)
    }

    /// Adds a what-if, in the place of another one of the same name, in the order of the table.
    pub fn add(&mut self, chosen: ChosenWhatIf) {
        self.what_ifs.retain(|other| other.name() != chosen.name());
        self.what_ifs.push(chosen);
        self.what_ifs.sort_by_key(|chosen| chosen.order);
    }
}

impl fmt::Display for ChosenWhatIf {
    /// As it is given in options (`world-size=16`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name(), self.value)
    }
}
