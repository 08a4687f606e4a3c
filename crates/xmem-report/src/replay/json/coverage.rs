//! How far a script was recorded, as JSON.

use serde::Serialize;
use xmem::analyzer::recording::UnseenEvent;
use xmem::predict::{Coverage, PartAdvice, PartPeak};

/// How far the script was recorded, and the peaks of its parts.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CoverageDto {
    /// whole: to the script's end; iterations: it was stopped after the recorded iterations, or the answer is about these
    /// alone; time: beyond them, until the time was up; settled: until nothing new followed; failure: until the script failed; stopped: until it was stopped;
    /// unknown: the recording does not say.
    #[cfg_attr(test, schemars(extend("enum" = ["whole", "iterations", "time", "settled", "failure", "stopped", "unknown"])))]
    extent: &'static str,
    /// Optimizer steps after the recorded iterations.
    later_steps: u64,
    /// Batches that were left out, as all of them would have taken too long; the largest ones were not.
    batches_left_out: u64,
    /// Those of them with tensors of sizes that the script did not have otherwise.
    unlike_batches: u64,
    /// Optimizer steps at the end since the script asked anything new of the allocator.
    settled_steps: u64,
    /// What the source of the script says that it will do, and was not seen.
    unseen: Vec<UnseenDto>,
    /// Peaks of the parts of the script that were seen; empty where the recorder did not mark them.
    parts: Vec<PartDto>,
}

/// What a script will do.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UnseenDto {
    /// What it is; thawing: it trains parameters that were frozen.
    #[cfg_attr(test, schemars(extend("enum" = ["evaluation", "generation", "saving", "thawing"])))]
    kind: &'static str,
    /// The first line of the source that does it.
    place: String,
}

/// The peaks within a part of a script.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PartDto {
    /// What the script does.
    #[cfg_attr(test, schemars(extend("enum" = ["setup", "training", "evaluation", "generation", "saving", "loading", "capture"])))]
    part: &'static str,
    /// How often it began.
    count: u64,
    /// Highest allocated memory.
    allocated_bytes: u64,
    /// Highest reserved memory.
    reserved_bytes: u64,
    /// What would lower it.
    #[cfg_attr(test, schemars(extend("enum" = ["gather-on-host", "smaller-batches", "save-from-host", "load-to-host", "shorter-sequences", "shared-pool", null])))]
    advice: Option<&'static str>,
}

impl From<&Coverage> for CoverageDto {
    fn from(coverage: &Coverage) -> Self {
        Self {
            extent: coverage.extent.name(),
            later_steps: coverage.later_steps,
            batches_left_out: coverage.batches.left_out,
            unlike_batches: coverage.batches.unlike,
            settled_steps: coverage.settled_steps,
            unseen: coverage.unseen.iter().map(UnseenDto::from).collect(),
            parts: coverage.parts.iter().map(PartDto::from).collect(),
        }
    }
}

impl From<&UnseenEvent> for UnseenDto {
    fn from(event: &UnseenEvent) -> Self {
        Self { kind: event.kind.name(), place: event.place.clone() }
    }
}

impl From<&PartPeak> for PartDto {
    fn from(peak: &PartPeak) -> Self {
        Self {
            part: peak.part.name(),
            count: peak.count,
            allocated_bytes: peak.allocated.get(),
            reserved_bytes: peak.reserved.get(),
            advice: peak.advice.map(PartAdvice::name),
        }
    }
}
