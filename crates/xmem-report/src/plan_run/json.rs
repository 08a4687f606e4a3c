//! `xmem.plan-run/2`.

use serde::Serialize;
use xmem_studies::planning::{Arena, FollowedAnswer, FollowedRequests, JobPlan};

/// A job that followed a static memory plan: simulated, or run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanRunDocument<'a> {
    schema: &'static str,
    /// The file of the plan, or the input that was planned.
    plan: &'a str,
    /// The input that follows the plan; null of a command that was run.
    input: Option<&'a str>,
    /// The memory of the plan for what iterations make and free.
    iteration_bytes: u64,
    /// The memory of the plan for what the job keeps.
    lasting_bytes: u64,
    /// All requests.
    requests: u64,
    /// Requests at their planned address.
    planned: u64,
    /// Requests that the plan leaves to the caching allocator.
    outside: u64,
    /// Requests that differ from the plan.
    misses: u64,
    /// Misses at another place in the memory of the plan; the caching allocator serves the others.
    fitted: u64,
    /// Misses that the plan does not have.
    unknown: u64,
    /// Misses whose planned address was in use.
    occupied: u64,
    /// Misses on another stream than the plan's; on the CPU, of another thread.
    other_stream: u64,
    /// Misses for whose planned address there was no memory; null where memory has no end.
    no_memory: Option<u64>,
    /// Units of 512 bytes (64 on the CPU) that were given out twice; null where nothing was looked for.
    collisions: Option<u64>,
    /// Plans that were made on the way.
    replans: u64,
    /// The most memory of the plan and of the caching allocator's segments together; on the CPU, of the plan and of the C
    /// library's blocks.
    driver_peak_bytes: u64,
    /// What the allocator alone reserves for all requests; null of a command that was run.
    allocator_reserved_bytes: Option<u64>,
    /// The parts of a simulated run, in order: up to the end of the first iteration, and each later iteration; of a list,
    /// all of it.
    runs: Vec<RunDto>,
}

/// A part of a run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunDto {
    /// All requests.
    requests: u64,
    /// Requests at their planned address.
    planned: u64,
    /// Requests that the plan leaves to the allocator.
    outside: u64,
    /// Requests that the plan does not have.
    unknown: u64,
    /// Requests whose planned address is in use.
    occupied: u64,
    /// Requests of another stream than the plan's.
    other_stream: u64,
    /// Requests that are not in the plan, or whose address is in use, at another place in its memory.
    fitted: u64,
}

/// What a command did with a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanRunFigures {
    /// Its requests.
    pub requests: FollowedRequests,
    /// Those for whose planned address there was no memory.
    pub no_memory: u64,
    /// Units of memory that were given out twice; none if nothing was looked for.
    pub collisions: Option<u64>,
    /// Plans that were made on the way.
    pub replans: u64,
    /// The most memory of the plan and of the segments together.
    pub driver_peak: xmem::Bytes,
}

impl<'a> PlanRunDocument<'a> {
    /// The document of a simulated run of `input`, by the plan of the file or input `plan`.
    #[must_use]
    pub fn simulated(
        plan: &'a str,
        input: &'a str,
        followed: &JobPlan,
        answer: &FollowedAnswer,
    ) -> Self {
        let figures = PlanRunFigures {
            requests: answer.total,
            replans: answer.replans as u64,
            driver_peak: answer.peak,
            ..PlanRunFigures::default()
        };
        Self {
            input: Some(input),
            no_memory: None,
            allocator_reserved_bytes: Some(answer.alone.get()),
            runs: answer.runs.iter().map(RunDto::from).collect(),
            ..Self::run(plan, followed, &figures)
        }
    }

    /// The document of a command that was run with the plan of the file or input `plan`.
    #[must_use]
    pub fn run(plan: &'a str, followed: &JobPlan, figures: &PlanRunFigures) -> Self {
        let requests = RunDto::from(&figures.requests);
        Self {
            schema: "xmem.plan-run/2",
            plan,
            input: None,
            iteration_bytes: followed.bytes(Arena::Iteration).get(),
            lasting_bytes: followed.bytes(Arena::Lasting).get(),
            requests: requests.requests,
            planned: requests.planned,
            outside: requests.outside,
            misses: figures.requests.misses() as u64 + figures.no_memory,
            fitted: requests.fitted,
            unknown: requests.unknown,
            occupied: requests.occupied,
            other_stream: requests.other_stream,
            no_memory: Some(figures.no_memory),
            collisions: figures.collisions,
            replans: figures.replans,
            driver_peak_bytes: figures.driver_peak.get(),
            allocator_reserved_bytes: None,
            runs: Vec::new(),
        }
    }
}

impl From<&FollowedRequests> for RunDto {
    fn from(run: &FollowedRequests) -> Self {
        Self {
            requests: run.requests as u64,
            planned: run.planned as u64,
            outside: run.outside as u64,
            unknown: run.unknown as u64,
            occupied: run.occupied as u64,
            other_stream: run.other_stream as u64,
            fitted: run.fitted as u64,
        }
    }
}
