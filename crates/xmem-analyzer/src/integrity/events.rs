//! Whether all events are there, in order, with their times.

use super::checks::{
    DISORDERED, DROPPED, DURATIONS, END, MISSING, MODULES, NOTES, REPAIRED, SIMULTANEOUS,
    TIME_ORDER, TRUNCATED, ZERO_DURATIONS,
};
use super::{Integrity, Subject};
use rustc_hash::FxHashMap;
use xmem_trace::{IndexRun, OpKind};
use xmem_types::{Location, Nanos, OpId, ThreadIdx};

/// The category of the event that spans the whole recording, which Kineto writes last (libkineto,
/// output_json.cpp, `handleTraceSpan`).
const SPAN_OF_TRACE: &str = "Trace";

pub(super) fn check(subject: &Subject<'_>, integrity: &mut Integrity) {
    let trace = subject.program.trace;
    let evidence = &trace.evidence;
    let all = trace.event_count + evidence.dropped;
    integrity.add(&TRUNCATED, (evidence.truncated.into(), 1), None);
    integrity.add(&DROPPED, (evidence.dropped, all), None);
    integrity.add(&REPAIRED, (evidence.repaired, all), None);

    integrity.add(&NOTES, subject.marks_without_notes, None);

    let runs = [&evidence.ops, &evidence.memory, &evidence.python];
    let sum = |of: fn(&IndexRun) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
    let numbered = sum(|run| run.numbered);
    if numbered > 0 {
        let missing = evidence.missing().saturating_add(sum(|run| run.unnumbered));
        integrity.add(&MISSING, (missing, numbered), None);
        let ended = trace.other_events.contains_key(SPAN_OF_TRACE);
        integrity.add(&END, (u64::from(!ended), 1), None);
        integrity.add(&DISORDERED, (sum(|run| run.disordered), numbered), None);
        order(subject, integrity);
    }
    let calls = trace.python.len() as u64;
    integrity.add(&MODULES, (evidence.misnamed_modules, calls), None);
    times(subject, integrity);
}

/// Kineto writes the events of each kind in the order of their start (libkineto, output_json.cpp).
fn order(subject: &Subject<'_>, integrity: &mut Integrity) {
    let trace = subject.program.trace;
    let (ops, memory) = (&trace.ops, &trace.memory);
    let op =
        backwards(0..ops.len(), &ops.start, &ops.thread).map(|row| Location::Op(OpId::new(row)));
    let recorded = memory.len() - subject.earlier();
    // Allocations that failed are a kind of their own.
    let of_kind = |failed: bool| {
        let rows = (0..recorded).filter(move |&row| memory.out_of_memory[row] == failed);
        backwards(rows, &memory.time, &memory.thread)
    };
    let event = of_kind(false).chain(of_kind(true));
    let event = event.map(|row| Location::MemoryEvent(row as u32));
    let (ops_back, memory_back) = (op.clone().count(), event.clone().count());
    let python = &trace.python;
    let python_back = backwards(0..python.len(), &python.start, &python.thread).count();
    let pairs = ops.len() + recorded + python.len();
    integrity.add(
        &TIME_ORDER,
        ((ops_back + memory_back + python_back) as u64, pairs as u64),
        { op }.next().or({ event }.next()),
    );
}

fn times(subject: &Subject<'_>, integrity: &mut Integrity) {
    let trace = subject.program.trace;
    let (ops, memory) = (&trace.ops, &trace.memory);
    let at = |row: u32| memory.time[row as usize];
    let rows = subject.recorded_rows();
    let mut same = rows.windows(2).filter(|pair| at(pair[0]) == at(pair[1]));
    let count = same.clone().count() as u64;
    let first = same.next().map(|pair| Location::MemoryEvent(pair[1]));
    integrity.add(&SIMULTANEOUS, (count, rows.len() as u64), first);

    let timed = (ops.len() + trace.python.len()) as u64;
    let bad = trace.evidence.without_duration + trace.evidence.negative_durations;
    integrity.add(&DURATIONS, (bad, timed), None);
    if !subject.coarse {
        let instant = (0..ops.len())
            .filter(|&row| ops.kind[row] == OpKind::Operator && ops.duration[row] == Nanos::ZERO);
        integrity.add(&ZERO_DURATIONS, (instant.count() as u64, ops.len() as u64), None);
    }
}

/// Those of the rows that begin before the last one of their thread.
fn backwards<'a>(
    rows: impl Iterator<Item = usize> + Clone + 'a,
    times: &'a [Nanos],
    threads: &'a [ThreadIdx],
) -> impl Iterator<Item = usize> + Clone + 'a {
    let mut last: FxHashMap<ThreadIdx, Nanos> = FxHashMap::default();
    rows.filter(move |&row| {
        let before = last.insert(threads[row], times[row]);
        before.is_some_and(|before| times[row] < before)
    })
}
