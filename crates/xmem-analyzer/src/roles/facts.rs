//! The facts that roles are decided from.

use crate::program::Program;
use crate::python::{Frame, Registered};
use crate::recorder_facts::RecorderFacts;
use crate::recording::Recording;
use crate::spans::{Iteration, Phase, PhaseSpan, span_at};
use crate::timeline::Timeline;
use crate::transfers::Transfer;
use xmem_types::Nanos;

/// All that roles are decided from.
pub(crate) struct Facts<'a> {
    pub(crate) program: Program<'a>,
    pub(crate) timeline: &'a Timeline,
    pub(crate) phases: &'a [PhaseSpan],
    pub(crate) iterations: &'a [Iteration],
    pub(crate) transfers: &'a [Transfer],
    /// Per block.
    pub(crate) frames: &'a [Frame],
    pub(crate) recording: Option<&'a Recording>,
    /// The recorder's facts about blocks.
    pub(crate) recorder: &'a RecorderFacts,
    /// The times at which modules were given parameters and buffers.
    pub(crate) registrations: &'a [(Nanos, Registered)],
    /// After how many optimizer steps they repeat: the number of optimizers.
    pub(crate) step_period: usize,
}

impl Facts<'_> {
    pub(super) fn phase_at(&self, time: Nanos) -> Option<&PhaseSpan> {
        span_at(self.phases, time)
    }

    pub(super) fn span_end(&self, time: Nanos) -> Nanos {
        self.phase_at(time).map_or(Nanos::MAX, |p| p.end)
    }

    /// The start of the first forward phase.
    pub(super) fn first_forward(&self) -> Nanos {
        self.phases.iter().find(|p| p.phase == Phase::Forward).map_or(Nanos::MAX, |p| p.start)
    }

    /// The start of the last phase in which the model works: blocks alive then were kept for the whole
    /// run.
    pub(super) fn last_use(&self) -> Nanos {
        let last = |phase| self.phases.iter().rev().find(|p| p.phase == phase);
        last(Phase::OptimizerStep)
            .or_else(|| last(Phase::Backward))
            .or_else(|| last(Phase::Forward))
            .map_or(Nanos::MIN, |p| p.start)
    }
}
