//! `xmem.plan-run/1`.

use serde::Serialize;
use xmem_studies::planning::{HintedAnswer, HintedIteration};

/// Runs that follow a plan as a document of schema `xmem.plan-run/1`.
#[derive(Serialize)]
pub struct PlanRunDocument<'a> {
    schema: &'static str,
    plan: &'a str,
    input: &'a str,
    requests: usize,
    planned_bytes: u64,
    planned_at_end_bytes: u64,
    peak_bytes: u64,
    replans: usize,
    runs: Vec<RunDto>,
}

#[derive(Serialize)]
struct RunDto {
    iteration: Option<u32>,
    requests: usize,
    left_out: usize,
    allocator_reserved_bytes: u64,
    followed: Option<FollowedDto>,
    refused: Option<String>,
}

#[derive(Serialize)]
struct FollowedDto {
    planned: usize,
    larger: usize,
    occupied: usize,
    plan_bytes: u64,
    allocator_bytes: u64,
    total_bytes: u64,
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
