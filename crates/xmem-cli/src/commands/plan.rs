//! `xmem plan`.

mod args;
mod blocks;
mod error;
mod follow;
mod run;

pub(crate) use args::{PlanArgs, SHORT_HELP};
pub(crate) use blocks::{Source, recorded_job, recorded_on_cpu};
pub(crate) use error::PlanFailure;
pub(crate) use follow::{FollowFormat, FollowOutput, follow, plan_of_job};
pub(crate) use run::run;
