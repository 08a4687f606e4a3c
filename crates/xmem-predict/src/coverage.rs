//! What of a script an answer is about: how far it was recorded, and the peaks of its parts.

use std::ops::Range;
use xmem_analyzer::recording::{EndReason, LoadedBatches, RestEnd, UnseenEvent};
use xmem_analyzer::{Profile, ScriptPart};
use xmem_orchestrator::Schedule;
use xmem_types::Bytes;

/// Kinds of intervals from which on sizes vary, where they are one in so many of all: the first steps, and last batches of
/// an epoch, are others than most.
const MANY_KINDS: u64 = 10;
const MANY_SHARE: u64 = 5;

/// How far a script was recorded, and what it did up to there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// How far it was recorded.
    pub extent: CoveredExtent,
    /// Steps of optimizers after the recorded iterations.
    pub later_steps: u64,
    /// The batches of its loaders, of which the largest ones were not left out.
    pub batches: LoadedBatches,
    /// What the source of the script says that it will do, and was not seen.
    pub unseen: Vec<UnseenEvent>,
    /// Different intervals between steps and calls of the model in training, and all of them.
    pub training_kinds: (u64, u64),
    /// Steps at the end since anything new was asked of the allocator.
    pub settled_steps: u64,
    /// The parts of the script that were seen, in the order of [`ScriptPart::ALL`]; empty where the recorder did not mark
    /// them.
    pub parts: Vec<PartPeak>,
}

impl Coverage {
    /// Returns whether the job makes no other steps than those that were recorded: the script was recorded to its end, and
    /// none of its batches was left out.
    #[must_use]
    pub const fn has_all_steps(&self) -> bool {
        matches!(self.extent, CoveredExtent::Whole) && self.batches.left_out == 0
    }
}

/// How far a script was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CoveredExtent {
    /// The recording does not say.
    #[default]
    Unknown,
    /// To its end.
    Whole,
    /// It was stopped after the recorded iterations, or the answer is about these alone.
    Iterations,
    /// Beyond the recorded iterations, until the time was up.
    Time,
    /// Beyond the recorded iterations, until nothing new followed for long.
    Settled,
    /// Until it failed.
    Failure,
    /// Until it was stopped from outside.
    Stopped,
}

impl CoveredExtent {
    /// Returns whether the script was recorded to its end, or until nothing new followed.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::Whole | Self::Settled)
    }

    /// The name in machine-readable output (`iterations`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Whole => "whole",
            Self::Iterations => "iterations",
            Self::Time => "time",
            Self::Settled => "settled",
            Self::Failure => "failure",
            Self::Stopped => "stopped",
        }
    }
}

/// Peaks within a part of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartPeak {
    /// The part.
    pub part: ScriptPart,
    /// How often it was entered.
    pub count: u64,
    /// Highest allocated memory.
    pub allocated: Bytes,
    /// Highest reserved memory.
    pub reserved: Bytes,
    /// What would lower it.
    pub advice: Option<PartAdvice>,
}

/// What lowers the peak of a part of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PartAdvice {
    /// Results that an evaluation gathers go to the host, batch by batch.
    GatherOnHost,
    /// An evaluation has smaller batches.
    SmallerBatches,
    /// What is saved goes to the host first, tensor by tensor.
    SaveFromHost,
    /// What is loaded comes to the host first (`map_location="cpu"`), and from there into the model.
    LoadToHost,
    /// Sequences are shorter, or fewer are generated at once.
    ShorterSequences,
    /// Graphs share a pool.
    SharedPool,
}

impl PartAdvice {
    /// The name in machine-readable output (`gather-on-host`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GatherOnHost => "gather-on-host",
            Self::SmallerBatches => "smaller-batches",
            Self::SaveFromHost => "save-from-host",
            Self::LoadToHost => "load-to-host",
            Self::ShorterSequences => "shorter-sequences",
            Self::SharedPool => "shared-pool",
        }
    }

    /// The advice in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::GatherOnHost => {
                "memory grows from batch to batch: move results to the host (`.cpu()`) as they come, or add them up"
            }
            Self::SmallerBatches => "smaller batches for the evaluation",
            Self::SaveFromHost => {
                "copy tensors to the host one by one (`tensor.cpu()`) and save those"
            }
            Self::LoadToHost => {
                "load to the host (`map_location=\"cpu\"`), copy into the model, and drop what was loaded"
            }
            Self::ShorterSequences => {
                "shorter sequences, or fewer at once: the cache grows with both"
            }
            Self::SharedPool => "one memory pool for all graphs (`torch.cuda.graph(pool=...)`)",
        }
    }

    /// The advice for a part, in which memory stays that was not there at its beginning: this much of its peak.
    fn of(part: ScriptPart, peak: Bytes, stays: Bytes) -> Option<Self> {
        // What a batch leaves behind, such as a sum of losses, is less.
        let is_gathered = stays.get() > peak.get() / 20;
        match part {
            ScriptPart::Evaluation if is_gathered => Some(Self::GatherOnHost),
            ScriptPart::Evaluation => Some(Self::SmallerBatches),
            ScriptPart::Saving => Some(Self::SaveFromHost),
            ScriptPart::Loading => Some(Self::LoadToHost),
            ScriptPart::Generation => Some(Self::ShorterSequences),
            ScriptPart::Capture => Some(Self::SharedPool),
            _ => None,
        }
    }
}

impl Coverage {
    /// The coverage of an answer about the requests `within`, whose allocated and reserved memory are given for each request.
    pub(crate) fn new(
        profile: &Profile,
        schedule: &Schedule,
        within: &Range<usize>,
        (allocated, reserved): (&[Bytes], &[Bytes]),
    ) -> Self {
        let recording = profile.recording();
        let rest = recording.and_then(|recording| recording.rest.as_ref());
        let start = schedule.rest_start(profile);
        let rest = rest.filter(|_| start.is_some() && within.end == schedule.requests.len());
        let parts = match profile.parts.is_empty() {
            true => Vec::new(),
            false => peaks(profile, schedule, within, (allocated, reserved)),
        };
        let extent = rest.map_or_else(|| without_rest(profile), |rest| extent(rest.end));
        let unseen = match rest {
            Some(rest) => rest.unseen.as_slice(),
            None => recording.map_or(&[][..], |recording| &recording.unseen),
        };
        let batches = rest
            .map(|rest| &rest.batches)
            .or_else(|| recording.map(|recording| &recording.batches));
        Self {
            extent,
            later_steps: rest.map_or(0, |rest| rest.steps),
            batches: batches.cloned().unwrap_or_default(),
            unseen: if extent == CoveredExtent::Whole { Vec::new() } else { unseen.to_vec() },
            training_kinds: rest.map_or((0, 0), |rest| rest.training_kinds),
            settled_steps: rest.map_or(0, |rest| rest.settled_steps),
            parts,
        }
    }

    /// Returns whether steps are so different that the order of batches may decide what is reserved.
    #[must_use]
    pub fn has_many_kinds(&self) -> bool {
        let (kinds, all) = self.training_kinds;
        kinds > MANY_KINDS && kinds.saturating_mul(MANY_SHARE) > all
    }

    /// Returns whether a part of the script was seen.
    #[must_use]
    pub fn has(&self, part: ScriptPart) -> bool {
        self.parts.iter().any(|seen| seen.part == part)
    }
}

/// Returns whether what the script did before goes on after this part.
const fn is_within_others(part: ScriptPart) -> bool {
    use ScriptPart::{Capture, Generation, Loading, Saving};
    matches!(part, Saving | Loading | Generation | Capture)
}

fn extent(end: RestEnd) -> CoveredExtent {
    match end {
        RestEnd::End | RestEnd::Exit => CoveredExtent::Whole,
        RestEnd::Time => CoveredExtent::Time,
        RestEnd::Settled => CoveredExtent::Settled,
        RestEnd::Exception | RestEnd::Memory => CoveredExtent::Failure,
        _ => CoveredExtent::Stopped,
    }
}

fn without_rest(profile: &Profile) -> CoveredExtent {
    let ended = profile.recording().and_then(|recording| recording.ended.as_ref());
    match ended.map(|ended| ended.reason) {
        None => CoveredExtent::Unknown,
        Some(EndReason::Complete) => CoveredExtent::Iterations,
        Some(EndReason::ScriptEnd | EndReason::Exit) => CoveredExtent::Whole,
        Some(EndReason::Exception | EndReason::Memory) => CoveredExtent::Failure,
        Some(_) => CoveredExtent::Stopped,
    }
}

fn peaks(
    profile: &Profile,
    schedule: &Schedule,
    within: &Range<usize>,
    (allocated, reserved): (&[Bytes], &[Bytes]),
) -> Vec<PartPeak> {
    let row = |time| schedule.times.partition_point(|&at| at < time);
    // Of each part: how often, the highest of both, and how much stays up to its end.
    let mut seen = [(0_u64, Bytes::ZERO, Bytes::ZERO, Bytes::ZERO); ScriptPart::ALL.len()];
    let place = |part| ScriptPart::ALL.iter().position(|known| *known == part);
    let mut starts = vec![(0, ScriptPart::Setup)];
    starts.extend(profile.parts.iter().map(|start| (row(start.time), start.part)));
    let mut base = None;
    let is_all = within.end == schedule.requests.len();
    let ends = starts.iter().skip(1).map(|&(start, _)| start).chain([schedule.requests.len()]);
    for (&(start, part), end) in starts.iter().zip(ends) {
        let (from, to) = (start.max(within.start), end.min(within.end));
        let Some(seen) = place(part).map(|at| &mut seen[at]) else { continue };
        // With what is there when it begins.
        let rows = from.saturating_sub(1)..to.max(from.min(1));
        let highest = |values: &[Bytes]| values.get(rows.clone())?.iter().copied().max();
        // What goes on after a part within it does not begin again.
        let begins = is_within_others(part) || base != Some(part);
        if !is_within_others(part) {
            base = Some(part);
        }
        seen.0 += u64::from(begins && (start < within.end || is_all));
        seen.1 = seen.1.max(highest(allocated).unwrap_or_default());
        seen.2 = seen.2.max(highest(reserved).unwrap_or_default());
        seen.3 = seen.3.max(allocated.get(rows).map_or(Bytes::ZERO, growth));
    }
    let all = ScriptPart::ALL.into_iter().zip(seen).filter(|(_, (count, ..))| *count > 0);
    let peak = |(part, (count, allocated, reserved, stays))| PartPeak {
        part,
        count,
        allocated,
        reserved,
        advice: PartAdvice::of(part, allocated, stays),
    };
    all.map(peak).collect()
}

/// How much the least memory in the last eighth of a part is above the least in its first half.
fn growth(allocated: &[Bytes]) -> Bytes {
    let least = |values: &[Bytes]| values.iter().copied().min().unwrap_or_default();
    let count = allocated.len();
    let (begin, end) = (&allocated[..count / 2], &allocated[count - count / 8..]);
    if end.is_empty() { Bytes::ZERO } else { least(end).saturating_sub(least(begin)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_were_left_out_are_steps_that_were_not_recorded() {
        let of = |extent, left_out| {
            let mut coverage = Coverage { extent, ..Coverage::default() };
            coverage.batches.left_out = left_out;
            coverage
        };
        assert!(of(CoveredExtent::Whole, 0).has_all_steps());
        assert!(!of(CoveredExtent::Whole, 4749).has_all_steps());
        assert!(!of(CoveredExtent::Time, 0).has_all_steps());
    }
}
