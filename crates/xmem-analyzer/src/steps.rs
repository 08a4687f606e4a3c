//! Optimizer steps: those that nothing marks, and which of several optimizers a step is of.

use crate::forwards::Forwards;
use crate::names::NameKind;
use crate::program::Program;
use crate::timeline::{Mark, MarkKind, Timeline};
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use xmem_trace::Trace;
use xmem_types::{Diagnostics, OpId, Severity, Sym};

/// The timeline with steps that nothing marks: where no optimizer is annotated and no Python call shows
/// one, the operators between a backward
/// pass and the next forward that write in place are one, if they write at least half as many
/// tensors as gradients were accumulated.
pub(crate) fn infer(
    timeline: Timeline,
    program: Program<'_>,
    forwards: &Forwards,
    notes: &mut Diagnostics,
) -> Timeline {
    let Timeline { outer, marks, .. } = &timeline;
    if marks.iter().any(|m| m.kind == MarkKind::Step) {
        return timeline;
    }
    let Program { trace, tree, .. } = program;
    let kind = |op: &OpId| program.kind(*op);
    let written = |op: &OpId| Some(program.arguments(*op).tensor(0)?.dims.as_slice());
    let mut found: Vec<(usize, Mark)> = Vec::new();
    let mut gradients = 0;
    let mut shapes: FxHashSet<&[u64]> = FxHashSet::default();
    for (row, mark) in marks.iter().enumerate() {
        let ops = &outer[mark.first..mark.last];
        match mark.kind {
            MarkKind::Backward => {
                gradients += ops.iter().filter(|o| kind(o) == NameKind::AccumulateNode).count();
                let inner = ops.iter().flat_map(|&op| tree.descendants(op));
                shapes.extend(
                    inner.filter(|op| kind(op) == NameKind::Accumulate).filter_map(written),
                );
            }
            MarkKind::Other if gradients > 0 => {
                let until = forwards.first_in(mark.start, mark.end);
                let before: Vec<usize> = (mark.first..mark.last)
                    .take_while(|&i| until.is_none_or(|t| trace.ops.start[outer[i].index()] < t))
                    .collect();
                let writes: Vec<usize> = before
                    .into_iter()
                    .filter(|&i| {
                        kind(&outer[i]) == NameKind::InPlace
                            && (shapes.is_empty()
                                || written(&outer[i]).is_none_or(|d| shapes.contains(d)))
                    })
                    .collect();
                if writes.len() * 2 < gradients {
                    continue;
                }
                // State is made before it is written: the step begins with the run.
                let Some(&to) = writes.last() else { continue };
                let from = mark.first;
                gradients = 0;
                let end = outer[to].index();
                let step = Mark {
                    start: trace.ops.start[outer[from].index()],
                    end: trace.ops.start[end] + trace.ops.duration[end],
                    kind: MarkKind::Step,
                    op: None,
                    first: from,
                    last: to + 1,
                };
                found.push((row, step));
            }
            _ => {}
        }
    }
    notes.report_many("optimizer-by-writes", Severity::Note, None, found.len() as u64, || {
        "no optimizer step is annotated: in-place operators between backward and the next \
         forward are treated as the step"
            .into()
    });
    with_steps(timeline, found, trace)
}

/// The timeline with each step in place of the beginning of its run, which is the mark of this row.
fn with_steps(timeline: Timeline, steps: Vec<(usize, Mark)>, trace: &Trace) -> Timeline {
    let mut marks = Vec::with_capacity(timeline.marks.len() + steps.len());
    let mut steps = steps.into_iter().peekable();
    for (row, &run) in timeline.marks.iter().enumerate() {
        let Some((_, step)) = steps.next_if(|(at, _)| *at == row) else {
            marks.push(run);
            continue;
        };
        marks.push(step);
        if step.last < run.last {
            let start = trace.ops.start[timeline.outer[step.last].index()];
            marks.push(Mark { start, first: step.last, ..run });
        }
    }
    Timeline { marks, ..timeline }
}

/// The properties that distinguish the steps of two optimizers: the annotation's name and the set of
/// shapes that the step writes; where shapes were not recorded, the number of gradients accumulated
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    name: Sym,
    written: u64,
}

/// The signature of each step, in order.
pub(crate) fn signatures(timeline: &Timeline, program: Program<'_>) -> Vec<Signature> {
    let mut list = Vec::new();
    let mut accumulated = 0_u64;
    for mark in &timeline.marks {
        match mark.kind {
            MarkKind::Backward => {
                accumulated += timeline
                    .ops(mark)
                    .iter()
                    .filter(|op| program.kind(**op) == NameKind::AccumulateNode)
                    .count() as u64;
            }
            MarkKind::Step => {
                let name = mark.op.map_or(Sym::EMPTY, |op| program.op_symbol(op));
                let shapes = written_shapes(timeline.ops(mark), program);
                let written = if shapes.is_empty() { accumulated } else { hash_of(shapes) };
                list.push(Signature { name, written });
                accumulated = 0;
            }
            _ => {}
        }
    }
    list
}

fn written_shapes<'a>(ops: &[OpId], program: Program<'a>) -> FxHashSet<&'a [u64]> {
    ops.iter()
        .flat_map(|&op| std::iter::once(op).chain(program.tree.descendants(op).iter().copied()))
        .filter(|&op| program.kind(op) == NameKind::InPlace)
        .filter_map(|op| program.arguments(op).tensor(0))
        .map(|t| t.dims.as_slice())
        .filter(|dims| !dims.is_empty())
        .collect()
}

/// An order-independent hash of a set.
fn hash_of(shapes: FxHashSet<&[u64]>) -> u64 {
    shapes
        .into_iter()
        .map(|dims| {
            let mut hasher = FxHasher::default();
            dims.hash(&mut hasher);
            hasher.finish()
        })
        .fold(0, u64::wrapping_add)
}
