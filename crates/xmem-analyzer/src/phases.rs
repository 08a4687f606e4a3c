//! The phases within each iteration, from what torch itself writes: optimizer annotations, backward
//! nodes, data-loader annotations, module calls. No annotation of the user's is needed.

use crate::forwards::Forwards;
use crate::profile::JobKind;
use crate::spans::{Iteration, Phase, PhaseSpan, rows_in};
use crate::timeline::{Mark, MarkKind, Timeline};
use rustc_hash::FxHashSet;
use xmem_trace::Trace;
use xmem_types::{IterationId, Nanos, OpId};

/// Cuts time into phases. Spans are sorted, do not overlap and leave no gap.
pub(crate) fn find(
    trace: &Trace,
    timeline: &Timeline,
    forwards: &Forwards,
    job: JobKind,
    iterations: &[Iteration],
) -> Vec<PhaseSpan> {
    let Some(first) = iterations.first() else { return Vec::new() };
    let mut spans = Spans(Vec::new());
    spans.push(Nanos::MIN, first.start, Phase::Init, None, None);
    let gaps = Gaps { trace, timeline, forwards, job };
    for (index, iteration) in iterations.iter().enumerate() {
        let id = Some(IterationId::new(index));
        let marks = rows_in(&timeline.marks, iteration.start..iteration.end, |mark| mark.start);
        let marks = marks.iter().filter(|m| m.kind != MarkKind::Other);
        let mut at = iteration.start;
        let mut before = None;
        let mut forward = ForwardState::NotStarted;
        for mark in marks {
            gaps.fill(&mut spans, at..mark.start, before, Some(mark.kind), &mut forward, id);
            spans.push(mark.start.max(at), mark.end, phase(mark), id, mark.op);
            if matches!(mark.kind, MarkKind::Backward | MarkKind::Step) {
                forward = ForwardState::NotStarted;
            }
            before = Some(mark.kind);
            at = at.max(mark.end);
        }
        gaps.fill(&mut spans, at..iteration.end, before, None, &mut forward, id);
    }
    spans.0
}

fn phase(mark: &Mark) -> Phase {
    match mark.kind {
        MarkKind::Data => Phase::Data,
        MarkKind::ZeroGrad => Phase::ZeroGrad,
        MarkKind::Step => Phase::OptimizerStep,
        MarkKind::Backward => Phase::Backward,
        MarkKind::Other => Phase::Forward,
    }
}

/// The progress of forward since the last backward or step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForwardState {
    NotStarted,
    Running,
}

struct Gaps<'a> {
    trace: &'a Trace,
    timeline: &'a Timeline,
    forwards: &'a Forwards,
    job: JobKind,
}

impl Gaps<'_> {
    /// Fills the time between two marks.
    fn fill(
        &self,
        spans: &mut Spans,
        gap: std::ops::Range<Nanos>,
        before: Option<MarkKind>,
        after: Option<MarkKind>,
        forward: &mut ForwardState,
        id: Option<IterationId>,
    ) {
        // Marks that overlap, or a profiler's step that ends within one, leave no gap.
        if gap.end <= gap.start {
            return;
        }
        let from = self.forwards.first_in(gap.start, gap.end).or_else(|| {
            let evaluation = before == Some(MarkKind::Step) && after.is_none();
            evaluation.then(|| self.evaluation(&gap)).flatten()
        });
        let (lead, rest) = match (from, *forward, before, self.job) {
            (Some(from), ForwardState::NotStarted, _, _) => {
                *forward = ForwardState::Running;
                (from, Phase::Forward)
            }
            (_, ForwardState::Running, _, _) => (gap.start, Phase::Forward),
            // Gradient clipping and the like, up to the step.
            (None, _, Some(MarkKind::Backward), _) => (gap.start, Phase::Backward),
            (None, _, _, JobKind::Inference) => (gap.start, Phase::Forward),
            (None, _, _, JobKind::Training) => (gap.end, Phase::Data),
        };
        spans.push(gap.start, lead, Phase::Data, id, None);
        spans.push(lead, gap.end, rest, id, None);
    }

    /// The start of a forward pass without backward and without module calls: operators of at least
    /// three names that elsewhere make backward nodes.
    fn evaluation(&self, gap: &std::ops::Range<Nanos>) -> Option<Nanos> {
        let ops = &self.trace.ops;
        let outer = &self.timeline.outer;
        let mut seen = FxHashSet::default();
        let mut first = None;
        for op in rows_in(outer, gap.clone(), |op| ops.start[op.index()]) {
            let i = op.index();
            if self.forwards.has_name(ops.name[i]) {
                seen.insert(ops.name[i]);
                first = first.or(Some(ops.start[i]));
            }
        }
        first.filter(|_| seen.len() >= self.forwards.distinct_names().min(3))
    }
}

/// Spans under construction.
struct Spans(Vec<PhaseSpan>);

impl Spans {
    fn push(
        &mut self,
        start: Nanos,
        end: Nanos,
        phase: Phase,
        iteration: Option<IterationId>,
        mark: Option<OpId>,
    ) {
        if end <= start {
            return;
        }
        match self.0.last_mut() {
            Some(last)
                if last.phase == phase
                    && last.iteration == iteration
                    && mark.is_none()
                    && last.mark.is_none()
                    && phase != Phase::Backward =>
            {
                last.end = end;
            }
            _ => self.0.push(PhaseSpan { start, end, phase, iteration, mark }),
        }
    }
}
