//! Iterations and the phases within them, as spans of time.

use std::ops::Range;
use xmem_types::{IterationId, Nanos, OpId};

/// A part of a training iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Before the first iteration: model and optimizer are built.
    Init,
    /// A batch is loaded.
    Data,
    /// The model and the loss run.
    Forward,
    /// Autograd runs.
    Backward,
    /// Gradients are cleared.
    ZeroGrad,
    /// The optimizer runs.
    OptimizerStep,
}

impl Phase {
    /// Every phase, in the order of an iteration.
    pub const ALL: [Self; 6] = [
        Self::Init,
        Self::Data,
        Self::Forward,
        Self::Backward,
        Self::ZeroGrad,
        Self::OptimizerStep,
    ];

    /// The name in reports (`optimizer_step`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Data => "data",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::ZeroGrad => "zero_grad",
            Self::OptimizerStep => "optimizer_step",
        }
    }
}

/// A span of time in one phase. Spans do not overlap and are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PhaseSpan {
    /// Start, inclusive.
    pub start: Nanos,
    /// End, exclusive.
    pub end: Nanos,
    /// The phase.
    pub phase: Phase,
    /// The iteration it belongs to; none during init.
    pub iteration: Option<IterationId>,
    /// The annotation that marks it (optimizer step, zero_grad), if one does.
    pub mark: Option<OpId>,
}

/// The span of sorted `phases` in which a time lies.
pub(crate) fn span_at(phases: &[PhaseSpan], time: Nanos) -> Option<&PhaseSpan> {
    let after = phases.partition_point(|p| p.start <= time);
    after.checked_sub(1).map(|at| &phases[at])
}

/// The part of `rows`, which are sorted by `time`, whose times lie in `span`; empty if the span ends
/// before it starts, as spans from a damaged trace may.
pub(crate) fn rows_in<T>(rows: &[T], span: Range<Nanos>, time: impl Fn(&T) -> Nanos) -> &[T] {
    let rows = &rows[rows.partition_point(|row| time(row) < span.start)..];
    &rows[..rows.partition_point(|row| time(row) < span.end)]
}

/// A training (or inference) iteration. It does not end before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Iteration {
    /// Start, inclusive.
    pub start: Nanos,
    /// End, exclusive.
    pub end: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_ends_before_it_starts_has_no_rows() {
        let rows = [1, 3, 3, 7].map(Nanos);
        for (from, to, found) in [(1, 7, 3), (3, 4, 2), (0, 9, 4), (4, 4, 0), (7, 1, 0), (9, 0, 0)]
        {
            let span = Nanos(from)..Nanos(to);
            assert_eq!(rows_in(&rows, span, |time| *time).len(), found, "{from}..{to}");
        }
    }
}
