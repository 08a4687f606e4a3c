//! The spans of iterations.

use crate::forwards::Forwards;
use crate::names::{NameKind, Names};
use crate::periods;
use crate::profile::JobKind;
use crate::spans::{Iteration, rows_in};
use crate::steps::Signature;
use crate::timeline::{Mark, MarkKind, Timeline};
use rustc_hash::FxHashMap;
use xmem_trace::Trace;
use xmem_types::{Diagnostics, Nanos, Severity, Sym};

/// All that iterations are found from.
pub(crate) struct Signs<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) names: &'a Names,
    pub(crate) timeline: &'a Timeline,
    pub(crate) forwards: &'a Forwards,
    pub(crate) signatures: &'a [Signature],
    /// Ends of iterations that the recorder marked.
    pub(crate) ends: &'a [Nanos],
}

/// Finds the iterations: by the recorder's marks, else by `ProfilerStep` marks, else by optimizer
/// steps (several optimizers make one iteration where their steps alternate), else by backward
/// passes, else by calls of the model, else by repeated operators.
pub(crate) fn find(signs: &Signs<'_>, notes: &mut Diagnostics) -> (JobKind, Vec<Iteration>) {
    let marks = &signs.timeline.marks;
    if marks.is_empty() {
        return (JobKind::Inference, Vec::new());
    }
    let trains = marks.iter().any(|m| matches!(m.kind, MarkKind::Backward | MarkKind::Step));
    let job = if trains { JobKind::Training } else { JobKind::Inference };
    let ends = round_ends(signs);
    let profiler = profiler_steps(signs);
    let end = end(signs);
    if signs.ends.is_empty() && !profiler.is_empty() && ends.len() < 2 * profiler.len().max(1) {
        let unmarked = before_first(signs, &ends, profiler[0]);
        return (job, contiguous([unmarked, profiler].concat(), end));
    }
    let iterations = match job {
        JobKind::Training => training(signs, ends, end, notes),
        JobKind::Inference => inference(signs, end, notes),
    };
    (job, iterations)
}

/// Starts of `ProfilerStep#N` annotations (torch/profiler/profiler.py, `step`). Not trusted where
/// they hold two or more whole iterations each.
fn profiler_steps(signs: &Signs<'_>) -> Vec<Nanos> {
    let ops = &signs.trace.ops;
    let mut starts: Vec<Nanos> = (0..ops.len())
        .filter(|&i| signs.names.kind(ops.name[i]) == NameKind::ProfilerStep)
        .map(|i| ops.start[i])
        .collect();
    starts.sort_unstable();
    starts
}

/// Starts of the rounds with a backward pass that end before the first `ProfilerStep#N`: a script may start the
/// profiler without that mark.
fn before_first(signs: &Signs<'_>, ends: &[(usize, &Mark)], first: Nanos) -> Vec<Nanos> {
    let mut backward = signs.timeline.marks.iter().filter(|m| m.kind == MarkKind::Backward);
    let Some(trained) = backward.next().map(|m| m.start) else { return Vec::new() };
    let ends: Vec<Nanos> = ends
        .iter()
        .map(|(_, mark)| mark.end)
        .filter(|&end| trained < end && end <= first)
        .collect();
    let Some((_, followed)) = ends.split_last() else { return Vec::new() };
    std::iter::once(first_start(signs, &ends)).chain(followed.iter().copied()).collect()
}

/// Iterations from each start to the next, the last one to `end`: a mark of another thread may start
/// after all that the training thread did.
fn contiguous(mut starts: Vec<Nanos>, end: Nanos) -> Vec<Iteration> {
    starts.sort_unstable();
    let end = starts.last().map_or(end, |&last| end.max(last));
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts.iter().zip(ends).map(|(&start, end)| Iteration { start, end }).collect()
}

/// The mark that ends each round of training.
fn round_ends<'a>(signs: &Signs<'a>) -> Vec<(usize, &'a Mark)> {
    if !signs.ends.is_empty() {
        return marked_ends(signs);
    }
    let marks = signs.timeline.marks.iter().enumerate();
    let steps: Vec<_> = marks.clone().filter(|(_, m)| m.kind == MarkKind::Step).collect();
    if !steps.is_empty() {
        let period = periods::of_steps(signs.signatures);
        return steps.into_iter().skip(period - 1).step_by(period).collect();
    }
    // A backward pass ends a round unless another follows without a forward in between.
    let backward: Vec<_> = marks.filter(|(_, m)| m.kind == MarkKind::Backward).collect();
    let next = backward.iter().skip(1).map(|(_, m)| m.start).chain([Nanos::MAX]);
    backward
        .iter()
        .zip(next)
        .filter(|((_, m), next)| {
            *next == Nanos::MAX || signs.forwards.first_in(m.end, *next).is_some()
        })
        .map(|(m, _)| *m)
        .collect()
}

/// The step, or else the backward pass, that each marked end follows.
fn marked_ends<'a>(signs: &Signs<'a>) -> Vec<(usize, &'a Mark)> {
    let marks = &signs.timeline.marks;
    let steps = marks.iter().any(|m| m.kind == MarkKind::Step);
    let kind = if steps { MarkKind::Step } else { MarkKind::Backward };
    let rows: Vec<usize> = (0..marks.len()).filter(|&at| marks[at].kind == kind).collect();
    let last = |end: &Nanos| {
        let before = rows.partition_point(|&at| marks[at].start <= *end);
        let at = rows[before.checked_sub(1)?];
        Some((at, &marks[at]))
    };
    let mut ends: Vec<_> = signs.ends.iter().filter_map(last).collect();
    ends.dedup_by_key(|(at, _)| *at);
    ends
}

/// The number of optimizer steps in each iteration that the recorder marked.
pub(crate) fn steps_of_each(signs: &Signs<'_>) -> Vec<usize> {
    let marks = &signs.timeline.marks;
    let steps: Vec<Nanos> =
        marks.iter().filter(|m| m.kind == MarkKind::Step).map(|m| m.start).collect();
    let counts: Vec<usize> =
        signs.ends.iter().map(|end| steps.partition_point(|step| step <= end)).collect();
    let before = std::iter::once(0).chain(counts.iter().copied());
    counts.iter().zip(before).map(|(count, before)| count - before).collect()
}

/// The number of optimizer steps in an iteration.
pub(crate) fn steps_in_each(signs: &Signs<'_>) -> usize {
    let marks = &signs.timeline.marks;
    let steps: Vec<Nanos> =
        marks.iter().filter(|m| m.kind == MarkKind::Step).map(|m| m.start).collect();
    let before = |end: &Nanos| steps.partition_point(|s| s <= end);
    let counts: Vec<usize> = signs.ends.iter().map(before).collect();
    let rounds: Vec<usize> = counts.windows(2).map(|w| w[1] - w[0]).collect();
    match rounds.first().or(counts.first()) {
        Some(&each @ 1..) if rounds.iter().all(|&round| round == each) => each,
        _ => periods::of_steps(signs.signatures),
    }
}

fn training(
    signs: &Signs<'_>,
    ends: Vec<(usize, &Mark)>,
    end_of_trace: Nanos,
    notes: &mut Diagnostics,
) -> Vec<Iteration> {
    let marks = &signs.timeline.marks;
    let first_backward = marks.iter().find(|m| m.kind == MarkKind::Backward);
    let cleared_first = marks
        .iter()
        .any(|m| m.kind == MarkKind::ZeroGrad && first_backward.is_some_and(|b| m.start < b.start));
    let ends: Vec<Nanos> =
        ends.into_iter().map(|(at, m)| with_tail(signs, at, m, cleared_first)).collect();
    let start = first_start(signs, &ends);
    let ends: Vec<Nanos> = ends.into_iter().filter(|&e| e > start).collect();
    let last = ends.last().copied().unwrap_or(start);
    let mut starts = vec![start];
    starts.extend(&ends);
    if marks.iter().any(|m| m.kind == MarkKind::Backward && m.start >= last) {
        notes.report("incomplete-iteration", Severity::Note, None, || {
            "the trace ends within an iteration".into()
        });
    } else {
        // What follows the last step belongs to its iteration.
        starts.pop();
    }
    contiguous(starts, end_of_trace)
}

/// The end of a round: what the loop still does with its result (`loss.item()`), and the clearing
/// of gradients where the loop does that last.
fn with_tail(signs: &Signs<'_>, at: usize, mark: &Mark, cleared_first: bool) -> Nanos {
    let ops = &signs.trace.ops;
    let mut end = mark.end;
    for next in &signs.timeline.marks[at + 1..] {
        match next.kind {
            MarkKind::ZeroGrad if !cleared_first => end = next.end,
            MarkKind::Other => {
                for op in signs.timeline.ops(next) {
                    let i = op.index();
                    if signs.names.kind(ops.name[i]) != NameKind::HostRead {
                        return end;
                    }
                    end = ops.start[i] + ops.duration[i];
                }
            }
            _ => return end,
        }
    }
    end
}

/// The first iteration begins with its forward, or with what leads up to it: a data loader, the
/// clearing of gradients, and the operators that also lead up to the second iteration's.
fn first_start(signs: &Signs<'_>, ends: &[Nanos]) -> Nanos {
    let marks = &signs.timeline.marks;
    let forward = lead_end(signs, Nanos::MIN);
    let Some(&second) = ends.first() else { return forward };
    let names_between = |from: Nanos, to: Nanos| -> Vec<(Nanos, Sym)> {
        let ops = &signs.trace.ops;
        rows_in(&signs.timeline.outer, from..to, |op| ops.start[op.index()])
            .iter()
            .map(|o| (ops.start[o.index()], ops.name[o.index()]))
            .collect()
    };
    let mut start = forward;
    if let Some(mark) = marks
        .iter()
        .find(|m| matches!(m.kind, MarkKind::Data | MarkKind::ZeroGrad) && m.start < forward)
    {
        start = mark.start;
    }
    if ends.len() > 1 {
        let usual = names_between(second, lead_end(signs, second));
        let before = names_between(Nanos::MIN, forward);
        let same = before.iter().rev().zip(usual.iter().rev()).take_while(|(a, b)| a.1 == b.1);
        if let Some((first, _)) = same.last() {
            start = start.min(first.0);
        }
    }
    start
}

/// The start of forward after `from`.
fn lead_end(signs: &Signs<'_>, from: Nanos) -> Nanos {
    signs
        .forwards
        .first_in(from, Nanos::MAX)
        .or_else(|| signs.timeline.marks.iter().map(|m| m.start).find(|s| *s >= from))
        .unwrap_or(signs.timeline.end)
}

fn inference(signs: &Signs<'_>, end_of_trace: Nanos, notes: &mut Diagnostics) -> Vec<Iteration> {
    notes.report("no-backward", Severity::Note, None, || {
        "the trace has no backward pass and no optimizer step: it is treated as inference".into()
    });
    let ops = &signs.trace.ops;
    let outer = &signs.timeline.outer;
    let data: Vec<Nanos> =
        signs.timeline.marks.iter().filter(|m| m.kind == MarkKind::Data).map(|m| m.start).collect();
    let mut starts: Vec<Nanos> = match model(signs) {
        _ if !signs.ends.is_empty() => {
            let first = lead_end(signs, Nanos::MIN).min(signs.ends[0]);
            let first = data.first().copied().filter(|d| *d < first).unwrap_or(first);
            // What follows the last end belongs to its iteration. A pass ends when the next one is called: the recorder
            // notes it from within that call.
            let calls = &signs.forwards.modules;
            let call = |end: &Nanos| calls[..calls.partition_point(|c| c.start <= *end)].last();
            let called = |end: &Nanos| call(end).filter(|c| c.end > *end).map_or(*end, |c| c.start);
            let starts = std::iter::once(first).chain(signs.ends.iter().map(called));
            starts.take(signs.ends.len()).collect()
        }
        // A round begins with the batch it loads.
        Some(calls) => {
            let mut before = Nanos::MIN;
            calls
                .into_iter()
                .map(|(start, end)| {
                    let from = data.partition_point(|d| *d < before);
                    before = end;
                    data.get(from).copied().filter(|d| *d < start).unwrap_or(start)
                })
                .collect()
        }
        None => {
            let names: Vec<Sym> = outer.iter().map(|o| ops.name[o.index()]).collect();
            match periods::of_loop(&names) {
                Some((first, period)) if period > 1 => (first..names.len())
                    .step_by(period)
                    .map(|at| ops.start[outer[at].index()])
                    .collect(),
                _ => Vec::new(),
            }
        }
    };
    if starts.is_empty() {
        starts.push(signs.timeline.marks.first().map_or(Nanos::ZERO, |m| m.start));
    }
    contiguous(starts, end_of_trace)
}

/// The calls of the module that is called most often from outside of any module.
fn model(signs: &Signs<'_>) -> Option<Vec<(Nanos, Nanos)>> {
    let mut by_name: FxHashMap<Sym, Vec<(Nanos, Nanos)>> = FxHashMap::default();
    for call in &signs.forwards.modules {
        by_name.entry(call.name).or_default().push((call.start, call.end));
    }
    let time = |calls: &[(Nanos, Nanos)]| calls.iter().map(|c| c.1 - c.0).sum::<Nanos>();
    by_name.into_iter().max_by_key(|(name, c)| (time(c), *name)).map(|(_, calls)| calls)
}

fn end(signs: &Signs<'_>) -> Nanos {
    let memory = signs.trace.memory.time.iter().copied().max();
    memory.map_or(signs.timeline.end, |m| m.max(signs.timeline.end)) + Nanos(1)
}
