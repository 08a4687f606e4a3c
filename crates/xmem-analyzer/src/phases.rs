//! Iterations and phases, found from what torch itself writes: optimizer annotations, backward
//! nodes, `ProfilerStep` marks and data-loader annotations. No user annotation is needed.

use crate::autograd::EVALUATE;
use crate::optree::OpTree;
use crate::profile::{Iteration, Phase, PhaseSpan};
use xmem_trace::{OpKind, Trace};
use xmem_types::{Diagnostics, IterationId, Nanos, OpId, Severity, ThreadIdx};

/// A stretch that torch marks, before iterations are known.
#[derive(Clone, Copy, Debug)]
struct Mark {
    start: Nanos,
    end: Nanos,
    kind: MarkKind,
    op: Option<OpId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkKind {
    Data,
    ZeroGrad,
    Step,
    Backward,
    /// An outermost operator of none of the above.
    Other,
}

pub(crate) struct Structure {
    pub(crate) iterations: Vec<Iteration>,
    pub(crate) phases: Vec<PhaseSpan>,
}

/// Finds iterations and phases on the thread that trains.
pub(crate) fn find(trace: &Trace, tree: &OpTree, notes: &mut Diagnostics) -> Structure {
    let Some(thread) = training_thread(trace) else {
        return Structure { iterations: Vec::new(), phases: Vec::new() };
    };
    let marks = marks(trace, tree, thread);
    let forward_start = first_forward(trace, tree, thread, &marks);
    let iterations = iterations(trace, &marks, forward_start, notes);
    let phases = phases(trace, tree, &marks, &iterations, thread);
    Structure { iterations, phases }
}

/// The thread with the most operators.
fn training_thread(trace: &Trace) -> Option<ThreadIdx> {
    let mut counts = vec![0_u64; trace.threads.len()];
    for t in &trace.ops.thread {
        counts[t.index()] += 1;
    }
    let (index, _) = counts.iter().enumerate().max_by_key(|&(i, &n)| (n, std::cmp::Reverse(i)))?;
    Some(ThreadIdx::new(index))
}

fn marks(trace: &Trace, tree: &OpTree, thread: ThreadIdx) -> Vec<Mark> {
    let ops = &trace.ops;
    let mut marks: Vec<Mark> = Vec::new();
    let mut covered = Nanos::MIN;
    for &op in tree.preorder() {
        let i = op.index();
        if ops.thread[i] != thread || ops.start[i] < covered {
            continue;
        }
        let name = trace.strings.resolve(ops.name[i]);
        let kind = if ops.kind[i] == OpKind::Annotation {
            if name.starts_with("Optimizer.step#") {
                MarkKind::Step
            } else if name.starts_with("Optimizer.zero_grad#") {
                MarkKind::ZeroGrad
            } else if name.starts_with("enumerate(DataLoader)#")
                || name.starts_with("enumerate(DataPipe)#")
            {
                MarkKind::Data
            } else {
                continue;
            }
        } else if name.starts_with(EVALUATE) {
            MarkKind::Backward
        } else {
            MarkKind::Other
        };
        let end = ops.start[i] + ops.duration[i];
        covered = end;
        match marks.last_mut() {
            // One mark for a whole backward pass, and for a run of other operators.
            Some(last)
                if last.kind == kind && matches!(kind, MarkKind::Backward | MarkKind::Other) =>
            {
                last.end = last.end.max(end);
            }
            _ => marks.push(Mark {
                start: ops.start[i],
                end,
                kind,
                op: matches!(kind, MarkKind::Step | MarkKind::ZeroGrad | MarkKind::Data)
                    .then_some(op),
            }),
        }
    }
    merge_backward(&mut marks);
    marks
}

/// Gradient seeds and a few user operators (hooks) may stand between backward nodes; a short run
/// of other operators between two backward marks, without anything else, belongs to backward only
/// if it lies within the same Python call. That is not always known, so nothing is merged across
/// other operators here; only neighbours are.
fn merge_backward(marks: &mut Vec<Mark>) {
    marks.dedup_by(|next, last| {
        let same = next.kind == MarkKind::Backward && last.kind == MarkKind::Backward;
        if same {
            last.end = next.end;
        }
        same
    });
}

/// When the model first runs: the first module call, else the first operator that a backward node
/// points to, else the first operator after init-like marks.
fn first_forward(trace: &Trace, tree: &OpTree, thread: ThreadIdx, marks: &[Mark]) -> Nanos {
    let module = trace
        .python
        .name
        .iter()
        .zip(&trace.python.start)
        .filter(|(name, _)| trace.strings.resolve(**name).starts_with("nn.Module: "))
        .map(|(_, start)| *start)
        .min();
    if let Some(start) = module {
        return start;
    }
    let first_backward = marks.iter().find(|m| m.kind == MarkKind::Backward);
    if let Some(backward) = first_backward {
        let smallest = tree
            .preorder()
            .iter()
            .filter(|o| {
                let i = o.index();
                trace.ops.thread[i] == thread
                    && trace.ops.start[i] >= backward.start
                    && trace.ops.start[i] <= backward.end
                    && trace.ops.sequence[i] >= 0
                    && trace.strings.resolve(trace.ops.name[i]).starts_with(EVALUATE)
            })
            .map(|o| trace.ops.sequence[o.index()])
            .min();
        if let Some(sequence) = smallest {
            let first = (0..trace.ops.len())
                .filter(|&i| {
                    trace.ops.sequence[i] == sequence && trace.ops.start[i] < backward.start
                })
                .map(|i| trace.ops.start[i])
                .max();
            if let Some(first) = first {
                return first;
            }
        }
    }
    marks.first().map_or(Nanos::ZERO, |m| m.start)
}

fn iterations(
    trace: &Trace,
    marks: &[Mark],
    forward_start: Nanos,
    notes: &mut Diagnostics,
) -> Vec<Iteration> {
    let end_of_trace = end(trace);
    let profiler_steps: Vec<Iteration> = {
        let ops = &trace.ops;
        let mut list: Vec<Iteration> = (0..ops.len())
            .filter(|&i| {
                ops.kind[i] == OpKind::Annotation
                    && trace.strings.resolve(ops.name[i]).starts_with("ProfilerStep#")
            })
            .map(|i| Iteration { start: ops.start[i], end: ops.start[i] + ops.duration[i] })
            .collect();
        list.sort_by_key(|i| i.start);
        list
    };
    if profiler_steps.len() > 1 {
        return profiler_steps;
    }
    let steps: Vec<&Mark> = marks.iter().filter(|m| m.kind == MarkKind::Step).collect();
    let mut ends: Vec<Nanos> = if steps.is_empty() {
        let backward = marks.iter().filter(|m| m.kind == MarkKind::Backward);
        backward.map(|m| m.end).collect()
    } else {
        let names: Vec<&str> = steps
            .iter()
            .map(|m| m.op.map_or("", |o| trace.strings.resolve(trace.ops.name[o.index()])))
            .collect();
        let period = period(&names);
        steps.iter().skip(period - 1).step_by(period).map(|m| m.end).collect()
    };
    let start = first_iteration_start(marks, forward_start);
    ends.retain(|&e| e > start);
    let Some(&last) = ends.last() else {
        notes.report("no-backward", Severity::Note, None, || {
            "no backward pass and no optimizer step in the trace: taken as inference, one iteration"
                .into()
        });
        return vec![Iteration { start, end: end_of_trace }];
    };
    let tail = marks.iter().any(|m| m.kind == MarkKind::Backward && m.start > last);
    let mut iterations = Vec::with_capacity(ends.len() + 1);
    let mut from = start;
    for end in ends {
        iterations.push(Iteration { start: from, end });
        from = end;
    }
    if tail {
        notes.report("incomplete-iteration", Severity::Note, None, || {
            "the trace ends within an iteration".into()
        });
        iterations.push(Iteration { start: from, end: end_of_trace });
    } else if let Some(last) = iterations.last_mut() {
        last.end = end_of_trace;
    }
    iterations
}

/// The first iteration begins with the data or the clearing of gradients before the first forward.
fn first_iteration_start(marks: &[Mark], forward_start: Nanos) -> Nanos {
    marks
        .iter()
        .filter(|m| matches!(m.kind, MarkKind::Data | MarkKind::ZeroGrad))
        .map(|m| m.start)
        .min()
        .map_or(forward_start, |m| m.min(forward_start))
}

/// The smallest period of a sequence of optimizer steps: 1 for `A A A`, 2 for `A B A B`.
fn period(names: &[&str]) -> usize {
    (1..=names.len())
        .find(|&p| names.len() % p == 0 && names.iter().zip(&names[p..]).all(|(a, b)| a == b))
        .unwrap_or(1)
}

fn end(trace: &Trace) -> Nanos {
    let ops = trace.ops.start.iter().zip(&trace.ops.duration).map(|(&s, &d)| s + d).max();
    let memory = trace.memory.time.iter().copied().max();
    ops.into_iter().chain(memory).max().unwrap_or(Nanos::ZERO) + Nanos(1)
}

fn phases(
    trace: &Trace,
    tree: &OpTree,
    marks: &[Mark],
    iterations: &[Iteration],
    thread: ThreadIdx,
) -> Vec<PhaseSpan> {
    let _ = (tree, thread);
    let mut spans: Vec<PhaseSpan> = Vec::new();
    let Some(first) = iterations.first() else { return spans };
    spans.push(PhaseSpan {
        start: Nanos::MIN,
        end: first.start,
        phase: Phase::Init,
        iteration: None,
        mark: None,
    });
    for (index, iteration) in iterations.iter().enumerate() {
        let id = Some(IterationId::new(index));
        let from = if index == 0 { first.start } else { iteration.start };
        let inside: Vec<&Mark> =
            marks.iter().filter(|m| m.start >= from && m.start < iteration.end).collect();
        let mut at = from;
        // Between marks: forward, except after a step and before the next forward operators.
        let mut between = Phase::Data;
        for mark in inside {
            if mark.kind == MarkKind::Other {
                between = Phase::Forward;
                push(&mut spans, at, mark.start, Phase::Data, id, None);
                at = at.max(mark.start);
                continue;
            }
            push(&mut spans, at, mark.start, between, id, None);
            let phase = match mark.kind {
                MarkKind::Data => Phase::Data,
                MarkKind::ZeroGrad => Phase::ZeroGrad,
                MarkKind::Step => Phase::OptimizerStep,
                MarkKind::Backward => Phase::Backward,
                MarkKind::Other => continue,
            };
            push(&mut spans, mark.start, mark.end, phase, id, mark.op);
            at = mark.end;
            between = match phase {
                Phase::OptimizerStep => Phase::Data,
                Phase::Backward => Phase::Backward,
                _ => Phase::Forward,
            };
        }
        push(&mut spans, at, iteration.end, between, id, None);
    }
    let _ = trace;
    spans
}

fn push(
    spans: &mut Vec<PhaseSpan>,
    start: Nanos,
    end: Nanos,
    phase: Phase,
    iteration: Option<IterationId>,
    mark: Option<OpId>,
) {
    if end > start {
        spans.push(PhaseSpan { start, end, phase, iteration, mark });
    }
}
