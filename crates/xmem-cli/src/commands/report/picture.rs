//! A recording with all that a report shows of it.

use super::what_ifs::WhatIfs;
use crate::error::CliError;
use xmem::predict::Timeline;
use xmem::{Answer, Job};
use xmem_studies::offloading::OffloadAnswer;
use xmem_studies::planning::PlanAnswer;

/// A recording with all that is known about it.
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) job: Job,
    /// Under each of the settings.
    pub(super) pictured: Vec<Pictured>,
    /// Other settings that a page names, its plan, and its offloading policies.
    pub(super) what_ifs: WhatIfs,
    pub(super) plan: Option<Result<PlanAnswer, CliError>>,
    pub(super) offload: Option<Result<OffloadAnswer, CliError>>,
}

/// A run under some settings.
pub(super) struct Pictured {
    pub(super) answer: Answer,
    pub(super) timeline: Timeline,
}
