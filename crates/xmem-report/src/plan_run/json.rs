//! `xmem.plan-run/1`.

use serde::Serialize;
use xmem_studies::planning::{HintedAnswer, HintedIteration};

/// Runs of a job that follow a static memory plan.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanRunDocument<'a> {
    schema: &'static str,
    /// The file of the plan, or the input that was planned.
    plan: &'a str,
    /// The input that follows the plan.
    input: &'a str,
    /// The requests of the plan.
    requests: usize,
    /// The memory of the plan before the first run.
    planned_bytes: u64,
    /// The memory of the plan after the last run.
    planned_at_end_bytes: u64,
    /// The largest memory of a run: the plan's and the allocator's part together.
    peak_bytes: u64,
    /// New plans of all runs: one for each request that is larger or lives longer than in all runs before (Sekiyama's
    /// scheme).
    replans: usize,
    /// The runs, in order: iterations of a recording, or a list.
    runs: Vec<RunDto>,
}

/// A run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunDto {
    /// The iteration, from 0; null of a list.
    iteration: Option<u32>,
    /// Its requests that the plan is about.
    requests: usize,
    /// Its requests that are left out of the plan.
    left_out: usize,
    /// What the allocator of the job reserves for all of its blocks.
    allocator_reserved_bytes: u64,
    /// What the plan does; null if it does not apply.
    followed: Option<FollowedDto>,
    /// The reason why the plan does not apply; null if it does.
    refused: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FollowedDto {
    /// Requests at their planned address.
    planned: usize,
    /// Requests that the allocator serves, as they are larger than planned.
    larger: usize,
    /// Requests that the allocator serves, as a block at their address lived longer than planned.
    occupied: usize,
    /// The memory of the plan.
    plan_bytes: u64,
    /// What the allocator reserves for its requests, with those that are left out of the plan.
    allocator_bytes: u64,
    /// Both.
    total_bytes: u64,
    /// New plans of this run.
    replans: usize,
}

impl<'a> PlanRunDocument<'a> {
    /// The document of an answer; `plan` and `input` are the files.
    #[must_use]
    pub fn new(plan: &'a str, input: &'a str, answer: &HintedAnswer) -> Self {
        Self {
            schema: "xmem.plan-run/1",
            plan,
            input,
            requests: answer.requests,
            planned_bytes: answer.planned.get(),
            planned_at_end_bytes: answer.planned_at_end.get(),
            peak_bytes: answer.peak().get(),
            replans: answer.replans(),
            runs: answer.runs.iter().map(RunDto::from).collect(),
        }
    }
}

impl From<&HintedIteration> for RunDto {
    fn from(run: &HintedIteration) -> Self {
        let followed = run.followed.as_ref().ok().map(|figures| FollowedDto {
            planned: figures.planned,
            larger: figures.larger,
            occupied: figures.occupied,
            plan_bytes: figures.plan_bytes.get(),
            allocator_bytes: figures.allocator_bytes.get(),
            total_bytes: figures.total().get(),
            replans: figures.replans,
        });
        Self {
            iteration: run.iteration.map(|iteration| iteration.0),
            requests: run.requests,
            left_out: run.left_out,
            allocator_reserved_bytes: run.allocator_reserved.get(),
            followed,
            refused: run.followed.as_ref().err().map(ToString::to_string),
        }
    }
}
