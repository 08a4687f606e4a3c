//! What the recording has and the predicted run has not: blocks that rules left out, and allocations that failed.

use super::Timeline;
use super::names::TextId;
use crate::prediction::Prediction;
use std::cmp::Reverse;
use xmem_analyzer::{Phase, Role};
use xmem_orchestrator::Origin;
use xmem_types::{Bytes, IterationId};

/// The blocks of a rule in [`Timeline::left_out`], at most.
pub const MAX_LEFT_OUT: usize = 100;

/// A recorded block that a rule left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineLeftOut {
    /// The rule.
    pub rule: &'static str,
    /// Bytes that were recorded.
    pub size: Bytes,
    /// The role.
    pub role: Role,
    /// Phase of its allocation.
    pub phase: Phase,
    /// Iteration of its allocation; none before the first.
    pub iteration: Option<IterationId>,
    /// The innermost operator; an empty text where unknown.
    pub op: TextId,
    /// Module path; an empty text where unknown.
    pub module: TextId,
    /// Python line; an empty text where unknown.
    pub line: TextId,
}

/// An allocation that failed in the recorded job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineFailure {
    /// The last moment before it; 0 if there is none.
    pub after: u32,
    /// The bytes that were requested, as far as the file says.
    pub size: Bytes,
    /// The bytes that were free on the device, where the file says so.
    pub device_free: Option<Bytes>,
}

impl Prediction<'_> {
    pub(super) fn left_out(&self, run: &mut Timeline) -> Vec<TimelineLeftOut> {
        let (schedule, profile) = (&self.schedule, self.locator.profile);
        let mut all: Vec<_> = schedule.left_out.iter().collect();
        all.sort_by_key(|of| (of.effect, Reverse(profile.block(of.block).size), of.block));
        let of_rules = all.chunk_by(|one, other| one.effect == other.effect);
        let largest = of_rules.flat_map(|of| of.iter().take(MAX_LEFT_OUT));
        let names = &mut run.names;
        let described = largest.map(|of| {
            let place = Origin::Recorded(of.block).place(profile);
            let block = profile.block(of.block);
            TimelineLeftOut {
                rule: schedule.effects[of.effect as usize].rule.name,
                size: block.size,
                role: block.role,
                phase: place.phase,
                iteration: place.iteration,
                op: place
                    .op
                    .map(|op| names.text_id(profile.op_name(profile.asking_op(op))))
                    .unwrap_or_default(),
                module: names.text_id(profile.text(place.module)),
                line: names.text_id(profile.text(place.line)),
            }
        });
        described.collect()
    }

    pub(super) fn failures(&self, run: &Timeline) -> Vec<TimelineFailure> {
        let Some(gpu) = &self.locator.profile.gpu else { return Vec::new() };
        let failure = |failed: &xmem_analyzer::RecordedFailure| {
            let before = run.moments.partition_point(|moment| moment.time <= failed.time);
            TimelineFailure {
                after: before.saturating_sub(1) as u32,
                size: failed.size,
                device_free: failed.device_free,
            }
        };
        gpu.out_of_memory.iter().map(failure).collect()
    }
}
