//! The outermost operators of the training thread, grouped into spans that torch marks.

use crate::names::{NameKind, Names};
use crate::optree::OpTree;
use crate::python::PythonCalls;
use crate::spans::rows_in;
use rustc_hash::FxHashSet;
use std::ops::Range;
use xmem_trace::{OpKind, Trace};
use xmem_types::{Nanos, OpId, ThreadIdx};

/// The kind of a span, before iterations are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkKind {
    Data,
    ZeroGrad,
    Step,
    Backward,
    /// A run of outermost operators of none of the above.
    Other,
}

/// A span of time of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) kind: MarkKind,
    /// The annotation, if one marks it.
    pub(crate) op: Option<OpId>,
    /// Its outermost operators: a range of [`Timeline::outer`].
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// The training thread in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) thread: ThreadIdx,
    /// Outermost operators and marking annotations; backward nodes of other threads among them.
    pub(crate) outer: Vec<OpId>,
    /// Spans in order, without overlap.
    pub(crate) marks: Vec<Mark>,
    /// The last end of any operator.
    pub(crate) end: Nanos,
}

impl Timeline {
    /// The outermost operators of a mark.
    pub(crate) fn ops(&self, mark: &Mark) -> &[OpId] {
        &self.outer[mark.first..mark.last]
    }
}

/// The thread that runs forward: the one with most operators that have a forward sequence number,
/// or simply with most operators.
fn training_thread(trace: &Trace) -> Option<ThreadIdx> {
    let mut counts = vec![(0_u64, 0_u64); trace.threads.len()];
    for (i, t) in trace.ops.thread.iter().enumerate() {
        let count = counts.get_mut(t.index())?;
        count.1 += 1;
        if trace.ops.sequence[i] >= 0 && trace.ops.forward_thread[i] == 0 {
            count.0 += 1;
        }
    }
    let (index, _) = counts.iter().enumerate().max_by_key(|&(i, &n)| (n, std::cmp::Reverse(i)))?;
    Some(ThreadIdx::new(index))
}

/// Finds the spans. None if the trace has no operators.
pub(crate) fn find(
    trace: &Trace,
    tree: &OpTree,
    names: &Names,
    calls: &PythonCalls,
) -> Option<Timeline> {
    let ops = &trace.ops;
    if ops.is_empty() {
        return None;
    }
    let thread = training_thread(trace)?;
    let closures = closures(trace, tree, names, thread);
    let outer = outermost(trace, tree, names, thread, &closures);
    let end = outer.iter().map(|&o| tree.end(o)).max().unwrap_or(Nanos::ZERO);
    let mut timeline = Timeline { thread, outer, marks: Vec::new(), end };
    let mut spans = method_spans(&timeline, trace, names, calls, &closures);
    spans.extend(closures);
    spans.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end)));
    mark_all(&mut timeline, trace, tree, names, &spans);
    give_seeds_to_backward(&mut timeline, trace, names);
    Some(timeline)
}

fn mark_all(timeline: &mut Timeline, trace: &Trace, tree: &OpTree, names: &Names, spans: &[Span]) {
    let Timeline { outer, marks, .. } = timeline;
    let mut spans = spans.iter().peekable();
    for (at, &op) in outer.iter().enumerate() {
        let i = op.index();
        let (start, end) = (trace.ops.start[i], tree.end(op));
        while let Some(&span) = spans.next_if(|s| s.start <= start) {
            marks.extend(span.mark_after(marks.last(), at));
        }
        // What a node encloses stands beside it where both last less than the clock's unit.
        let beside = marks.last().is_some_and(|m| m.kind == MarkKind::Backward)
            && at.checked_sub(1).is_some_and(|before| {
                let before = outer[before].index();
                trace.ops.start[before] == start && trace.ops.duration[before] == Nanos::ZERO
            });
        let kind = match names.kind(trace.ops.name[i]) {
            NameKind::Step => MarkKind::Step,
            NameKind::ZeroGrad => MarkKind::ZeroGrad,
            NameKind::Data => MarkKind::Data,
            NameKind::Node | NameKind::AccumulateNode | NameKind::Accumulate => MarkKind::Backward,
            _ if beside => MarkKind::Backward,
            _ => MarkKind::Other,
        };
        let annotation = !matches!(kind, MarkKind::Backward | MarkKind::Other);
        match marks.last_mut() {
            // Within a call that marks a span as a whole.
            Some(last) if last.end > start && last.kind != MarkKind::Backward => {
                last.last = at + 1;
                last.op = last.op.or(annotation.then_some(op));
            }
            // One mark for a whole backward pass, and for a run of other operators.
            Some(last) if last.kind == kind && !annotation => {
                last.end = last.end.max(end);
                last.last = at + 1;
            }
            _ => {
                let op = annotation.then_some(op);
                marks.push(Mark { start, end, kind, op, first: at, last: at + 1 });
            }
        }
    }
    let n = outer.len();
    for &span in spans {
        marks.extend(span.mark_after(marks.last(), n));
    }
}

/// A span that something other than an outermost operator marks.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: Nanos,
    end: Nanos,
    kind: MarkKind,
    op: Option<OpId>,
}

impl Span {
    /// Its mark, without operators yet; none if it lies within the one before.
    fn mark_after(self, before: Option<&Mark>, at: usize) -> Option<Mark> {
        let Self { start, end, kind, op } = self;
        let apart = before.is_none_or(|m| m.end <= start);
        apart.then_some(Mark { start, end, kind, op, first: at, last: at })
    }
}

/// Steps that run forward and backward themselves: `Optimizer.step(closure)`, as PyTorch Lightning
/// always calls it (torch/optim/optimizer.py, `Optimizer.step`). They are seen through; the step is
/// what comes after the last backward node.
fn closures(trace: &Trace, tree: &OpTree, names: &Names, thread: ThreadIdx) -> Vec<Span> {
    let ops = &trace.ops;
    let kind = |op: OpId| names.kind(ops.name[op.index()]);
    let is_node = |op: OpId| matches!(kind(op), NameKind::Node | NameKind::AccumulateNode);
    let mut nodes: Vec<OpId> = tree.preorder().iter().copied().filter(|&op| is_node(op)).collect();
    nodes.sort_by_key(|op| ops.start[op.index()]);
    let steps = tree.preorder().iter().copied();
    let steps = steps.filter(|&op| kind(op) == NameKind::Step && ops.thread[op.index()] == thread);
    let span = |step: OpId| {
        let (start, end) = (ops.start[step.index()], tree.end(step));
        let within = rows_in(&nodes, start..end, |node| ops.start[node.index()]);
        let last = within.iter().map(|&n| tree.end(n)).max()?;
        Some(Span { start: last.min(end), end, kind: MarkKind::Step, op: Some(step) })
    };
    steps.filter_map(span).collect()
}

/// Python calls that mark a span: `zero_grad` methods (`Module.zero_grad` has no annotation),
/// and `step` methods of optimizers that are not torch's own, where nothing is annotated.
fn method_spans(
    timeline: &Timeline,
    trace: &Trace,
    names: &Names,
    calls: &PythonCalls,
    closures: &[Span],
) -> Vec<Span> {
    let [zero_grads, steps] = calls.method_calls(&trace.python);
    let kind = |op: &OpId| names.kind(trace.ops.name[op.index()]);
    let annotated =
        !closures.is_empty() || timeline.outer.iter().any(|op| kind(op) == NameKind::Step);
    let writes = |&(start, end): &(Nanos, Nanos)| {
        let ops = rows_in(&timeline.outer, start..end, |op| trace.ops.start[op.index()]);
        ops.iter().any(|op| kind(op) == NameKind::InPlace)
            && !ops.iter().any(|op| kind(op) == NameKind::Node)
    };
    let span = |kind| move |(start, end)| Span { start, end, kind, op: None };
    let steps = steps.into_iter().filter(|s| !annotated && writes(s));
    let zero_grads = zero_grads.into_iter().map(span(MarkKind::ZeroGrad));
    let mut spans: Vec<_> = zero_grads.chain(steps.map(span(MarkKind::Step))).collect();
    spans.retain(|s| s.end > s.start);
    spans
}

/// Annotations are seen through, but for those of torch that mark a span; of these, steps with a
/// closure are.
fn outermost(
    trace: &Trace,
    tree: &OpTree,
    names: &Names,
    thread: ThreadIdx,
    closures: &[Span],
) -> Vec<OpId> {
    let ops = &trace.ops;
    let order = tree.preorder();
    let with_closure: FxHashSet<OpId> = closures.iter().filter_map(|c| c.op).collect();
    let mut outer = Vec::new();
    let mut at = 0;
    while let Some(&op) = order.get(at) {
        let i = op.index();
        let kind = names.kind(ops.name[i]);
        let seen_through = kind == NameKind::Step && with_closure.contains(&op);
        let marks = matches!(kind, NameKind::Step | NameKind::ZeroGrad | NameKind::Data);
        let marks = marks && !seen_through;
        let node = matches!(kind, NameKind::Node | NameKind::AccumulateNode);
        let operator = ops.kind[i] == OpKind::Operator && !names.is_span(ops.name[i]);
        if ops.thread[i] == thread && (operator || marks) || node {
            outer.push(op);
            at += 1 + tree.descendants(op).len();
        } else {
            at += 1;
        }
    }
    outer.sort_by_key(|&o| ops.start[o.index()]);
    outer
}

/// The seed gradient is made just before the first node and belongs to backward.
fn give_seeds_to_backward(timeline: &mut Timeline, trace: &Trace, names: &Names) {
    let Timeline { outer, marks, .. } = timeline;
    for i in 1..marks.len() {
        let (before, after) = marks.split_at_mut(i);
        let (other, backward) = (&mut before[i - 1], &mut after[0]);
        if other.kind != MarkKind::Other || backward.kind != MarkKind::Backward {
            continue;
        }
        let seed = outer[other.last - 1];
        if names.kind(trace.ops.name[seed.index()]) == NameKind::OnesLike {
            backward.start = trace.ops.start[seed.index()];
            backward.first -= 1;
            other.last -= 1;
            other.end = if other.last == other.first {
                backward.start
            } else {
                other.end.min(backward.start)
            };
        }
    }
    marks.retain(|m| m.last > m.first || m.kind != MarkKind::Other);
}

/// The span around `time` in which none of `times`, which are sorted, lies but its start.
pub(crate) fn span_around(times: &[Nanos], time: Nanos) -> Range<Nanos> {
    let at = times.partition_point(|t| *t <= time);
    let start = at.checked_sub(1).map_or(Nanos::MIN, |at| times[at]);
    start..times.get(at).copied().unwrap_or(Nanos::MAX)
}
