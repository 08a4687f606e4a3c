//! The returns of Python calls that enclose a span of time.

use crate::python::MODULE;
use xmem_trace::{PythonTable, Trace};
use xmem_types::{Nanos, ThreadIdx};

/// A kind of Python call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Of a function in a file.
    Function,
    /// Of a module (`nn.Module: Linear_3`).
    Module,
}

/// The calls of each kind, so that one is found without looking at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returns {
    functions: Vec<Call>,
    modules: Vec<Call>,
}

/// A call in order of thread and start, outer calls first.
#[derive(Clone, Copy, Debug)]
struct Call {
    row: u32,
    /// The place in the list of the call of this kind that encloses it.
    around: Option<u32>,
}

impl Returns {
    /// `order` has the rows of the trace's Python calls by thread and start, outer calls first.
    pub(crate) fn of(trace: &Trace, order: &[u32]) -> Self {
        let kinds: Vec<Option<CallKind>> =
            trace.strings.iter().map(|(_, text)| kind(text)).collect();
        let of = |wanted| {
            let is = |row: &u32| kinds[trace.python.name[*row as usize].index()] == Some(wanted);
            calls(&trace.python, order.iter().copied().filter(is))
        };
        Self { functions: of(CallKind::Function), modules: of(CallKind::Module) }
    }

    /// The return of the innermost call of a kind that a thread is in from `from` to `to`.
    pub(crate) fn around(
        &self,
        python: &PythonTable,
        kind: CallKind,
        thread: ThreadIdx,
        from: Nanos,
        to: Nanos,
    ) -> Option<Nanos> {
        let calls = match kind {
            CallKind::Function => &self.functions,
            CallKind::Module => &self.modules,
        };
        let begun = calls.partition_point(|call| {
            let i = call.row as usize;
            (python.thread[i], python.start[i]) <= (thread, from)
        });
        let mut next = begun.checked_sub(1);
        while let Some(at) = next {
            let i = calls[at].row as usize;
            if python.thread[i] != thread {
                return None;
            }
            let end = python.start[i] + python.duration[i];
            if to <= end {
                return Some(end);
            }
            next = calls[at].around.map(|around| around as usize);
        }
        None
    }
}

fn kind(name: &str) -> Option<CallKind> {
    if name.starts_with(MODULE) {
        Some(CallKind::Module)
    } else if name.contains("): ") {
        Some(CallKind::Function)
    } else {
        None
    }
}

/// The calls of these rows, each with the one around it: one that has not returned before it begins.
fn calls(python: &PythonTable, rows: impl Iterator<Item = u32>) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut open: Vec<u32> = Vec::new();
    let mut thread = None;
    for (at, row) in rows.enumerate() {
        let i = row as usize;
        if thread != Some(python.thread[i]) {
            thread = Some(python.thread[i]);
            open.clear();
        }
        let returned = |&call: &u32| {
            let i = calls[call as usize].row as usize;
            python.start[i] + python.duration[i]
        };
        while open.last().is_some_and(|call| returned(call) < python.start[i]) {
            open.pop();
        }
        let around = open.last().copied();
        calls.push(Call { row, around });
        open.push(at as u32);
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::PythonCalls;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    /// Looks at every call.
    fn slowly(trace: &Trace, wanted: CallKind, from: Nanos, to: Nanos) -> Option<Nanos> {
        let python = &trace.python;
        (0..python.len())
            .filter(|&i| python.start[i] <= from && to <= python.start[i] + python.duration[i])
            .filter(|&i| python.thread[i] == ThreadIdx(0))
            .filter(|&i| kind(trace.strings.resolve(python.name[i])) == Some(wanted))
            .max_by_key(|&i| (python.start[i], Reverse(python.duration[i])))
            .map(|i| python.start[i] + python.duration[i])
    }

    /// Calls one within the other or one after the other: each says whether one returns before it.
    fn trace(calls: &[(u8, u8)]) -> (Trace, i64) {
        let mut trace = Trace::default();
        let names = ["nn.Module: Net_0", "job.py(3): run", "<built-in function len>"];
        let names = names.map(|name| trace.strings.intern(name));
        let (mut now, mut open) = (0, Vec::new());
        for &(returns, call) in calls {
            for _ in 0..returns {
                if let Some(row) = open.pop() {
                    let row: usize = row;
                    trace.python.duration[row] = Nanos(now) - trace.python.start[row];
                    now += 1;
                }
            }
            open.push(trace.python.len());
            trace.python.start.push(Nanos(now));
            trace.python.duration.push(Nanos(0));
            trace.python.name.push(names[usize::from(call % 3)]);
            trace.python.thread.push(ThreadIdx(u16::from(call / 3).into()));
            now += i64::from(call % 2);
        }
        while let Some(row) = open.pop() {
            trace.python.duration[row] = Nanos(now) - trace.python.start[row];
            now += 1;
        }
        (trace, now)
    }

    proptest! {
        #[test]
        fn the_call_around_a_span_is_the_one_that_a_look_at_all_calls_finds(
            rows in prop::collection::vec((0_u8..3, 0_u8..4), 0..24),
        ) {
            let (mut trace, end) = trace(&rows);
            let calls = PythonCalls::build(&trace.python, &mut trace.strings);
            let returns = Returns::of(&trace, calls.order());
            for kind in [CallKind::Function, CallKind::Module] {
                for from in 0..=end {
                    for to in from..=end {
                        let (from, to) = (Nanos(from), Nanos(to));
                        let found = returns.around(&trace.python, kind, ThreadIdx(0), from, to);
                        prop_assert_eq!(found, slowly(&trace, kind, from, to));
                    }
                }
            }
        }
    }
}
