//! Whether iterations run the same operators, and optimizers are annotated.

use super::checks::{OPTIMIZER, UNEQUAL_STEPS, UNLIKE, UNLIKE_CALLS, UNLIKE_SHAPES};
use super::{Integrity, Subject};
use crate::distributed::{self, Distributed};
use crate::python::MODULE;
use crate::spans::{Iteration, rows_in};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use xmem_types::{Nanos, OpId};

pub(super) fn check(subject: &Subject<'_>, integrity: &mut Integrity) {
    if subject.complete {
        unlike(subject, integrity);
    }
    optimizers(subject, integrity);
}

/// Optimizer steps of iterations that the recorder marked: if an iteration has fewer than the one before, or from
/// the second one on another number, then the loop is longer than an iteration, and its other parts may be missing.
/// The first iteration may have fewer than the others: a gradient scaler skips steps, a critic is trained before.
pub(super) fn steps(subject: &Subject<'_>, integrity: &mut Integrity) {
    let pairs = subject.steps.windows(2).enumerate();
    let differs =
        |(at, pair): &(usize, &[usize])| pair[1] < pair[0] || *at > 0 && pair[1] != pair[0];
    let unequal = pairs.filter(differs).count() as u64;
    integrity.add(&UNEQUAL_STEPS, (unequal, subject.steps.len() as u64), None);
}

/// Operators of an iteration that may be missing in the last one, at which the loop ends.
const AT_THE_END: u64 = 8;

/// Operators in 1,000 with other shapes in the next iteration from which on the batches are taken to vary:
/// at least 200 in recordings with varying batches, 140 where tokens are split by expert, at most 10 in others.
const VARYING: u64 = 75;

/// Operators and calls of modules of an iteration that are missing in the next. The first iteration, which
/// makes gradients and optimizer state, is left out, as is what follows the last.
fn unlike(subject: &Subject<'_>, integrity: &mut Integrity) {
    let trace = subject.program.trace;
    let (ops, python) = (&trace.ops, &trace.python);
    let dims = |row: usize| trace.signatures[ops.signature[row].0 as usize].dims;
    let rows = in_order((0..ops.len()).collect(), &ops.start);
    let operators = by_iteration(subject.iterations, &rows, &ops.start);
    let names = missing_in_next(&operators, |row| ops.name[row]);
    let shapes = missing_in_next(&operators, dims);
    let both = |row: usize| (ops.name[row], dims(row));
    // DDP makes its buckets anew in the second iteration, as no other does (torch/csrc/distributed/c10d/reducer.cpp,
    // `rebuild_buckets`).
    let both = match distributed::find(trace, subject.iterations) {
        Some(Distributed::Replicated) => replaced_in_next(&operators, both),
        _ => missing_in_next(&operators, both),
    };
    // Another program has other shapes too: names that differ where shapes do not are damaged.
    integrity.add(&UNLIKE, (names.0.saturating_sub(shapes.0), names.1), None);
    // With batches of several sizes, most operators have several shapes.
    let varies = both.0 * 1000 > VARYING * both.1;
    // Passes without a backward generate: keys and values of a few operators grow with each token.
    let trains = operators
        .iter()
        .copied()
        .flatten()
        .any(|&row| subject.program.names.is_node(ops.name[row]));
    let few = if varies || !trains { 0 } else { both.0.saturating_sub(AT_THE_END) };
    integrity.add(&UNLIKE_SHAPES, (few, both.1), None);

    let of_module = |row: &usize| trace.strings.resolve(python.name[*row]).starts_with(MODULE);
    let calls = in_order((0..python.len()).filter(of_module).collect(), &python.start);
    let calls = by_iteration(subject.iterations, &calls, &python.start);
    integrity.add(&UNLIKE_CALLS, replaced_in_next(&calls, |row| python.name[row]), None);
}

fn in_order(mut rows: Vec<usize>, starts: &[Nanos]) -> Vec<usize> {
    rows.sort_by_key(|&row| starts[row]);
    rows
}

/// The rows of each iteration but the first. The rows are in the order of their start.
fn by_iteration<'a>(
    iterations: &[Iteration],
    rows: &'a [usize],
    starts: &[Nanos],
) -> Vec<&'a [usize]> {
    let of_iteration = |i: &Iteration| rows_in(rows, i.start..i.end, |&row| starts[row]);
    iterations.iter().skip(1).map(of_iteration).collect()
}

/// Rows of an iteration whose key is missing in the next one, and all rows that were looked for.
fn missing_in_next<K: Eq + Hash>(iterations: &[&[usize]], key: impl Fn(usize) -> K) -> (u64, u64) {
    let pairs = differences(iterations, key);
    pairs.iter().fold((0, 0), |(missing, all), pair| (missing + pair.missing, all + pair.all))
}

/// Rows of an iteration in whose place others run in the next one, and all rows. A script that only does more, or
/// less, in one of them (it samples, or saves a checkpoint) has none.
fn replaced_in_next<K: Eq + Hash>(iterations: &[&[usize]], key: impl Fn(usize) -> K) -> (u64, u64) {
    let pairs = differences(iterations, key);
    let replaced = |pair: &Difference| pair.missing.min(pair.surplus);
    pairs.iter().fold((0, 0), |(sum, all), pair| (sum + replaced(pair), all + pair.all))
}

/// The rows of an iteration compared with those of the next one.
struct Difference {
    /// Rows of the first whose key is missing in the second.
    missing: u64,
    /// Rows of the second whose key is missing in the first.
    surplus: u64,
    /// Rows of the first.
    all: u64,
}

/// Each iteration compared with the next one, by the number of rows of each key.
fn differences<K: Eq + Hash>(iterations: &[&[usize]], key: impl Fn(usize) -> K) -> Vec<Difference> {
    let count = |rows: &&[usize]| {
        let mut counts: FxHashMap<K, u64> = FxHashMap::default();
        rows.iter().for_each(|&row| *counts.entry(key(row)).or_default() += 1);
        counts
    };
    let lacking = |one: &FxHashMap<K, u64>, other: &FxHashMap<K, u64>| -> u64 {
        let of_key = |key| other.get(key).copied().unwrap_or(0);
        one.iter().map(|(key, count)| count.saturating_sub(of_key(key))).sum()
    };
    let counts: Vec<_> = iterations.iter().map(count).collect();
    let pairs = counts.windows(2).map(|pair| Difference {
        missing: lacking(&pair[0], &pair[1]),
        surplus: lacking(&pair[1], &pair[0]),
        all: pair[0].values().sum(),
    });
    pairs.collect()
}

/// PyTorch annotates every step of its optimizers (torch/optim/optimizer.py, `profile_hook_step`).
fn optimizers(subject: &Subject<'_>, integrity: &mut Integrity) {
    let trace = subject.program.trace;
    let wrapped = |name: &str| {
        let file = name.split_once("torch/optim/").map(|(_, rest)| rest);
        file.is_some_and(|rest| {
            rest.ends_with(": step")
                && !rest.starts_with("lr_scheduler.py")
                && !rest.starts_with("swa_utils.py")
        })
    };
    let is_step: Vec<bool> = trace.strings.iter().map(|(_, text)| wrapped(text)).collect();
    let steps = trace.python.name.iter().filter(|name| is_step[name.index()]).count() as u64;
    let annotated = |text: &str| text.starts_with("Optimizer.step#");
    let annotations = trace.ops.name.iter().filter(|name| annotated(trace.strings.resolve(**name)));
    let annotations = annotations.count() as u64;
    let fused = |row: &usize| {
        let name = trace.strings.resolve(trace.ops.name[*row]);
        name.starts_with("aten::_fused_ad") || name.starts_with("aten::_fused_sgd")
    };
    let (mut steps, mut annotations) = (steps, annotations);
    for row in (0..trace.ops.len()).filter(fused) {
        let path = subject.program.tree.path(OpId::new(row));
        steps += 1;
        annotations += u64::from({ path }.any(|op| annotated(subject.program.op_name(op))));
    }
    integrity.add(&OPTIMIZER, (steps.saturating_sub(annotations), steps), None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_or_fewer_rows_replace_none() {
        for (first, second, missing, replaced) in [
            ("aabb", "aabb", 0, 0),
            // A script that samples in one iteration.
            ("aabbcc", "aabb", 2, 0),
            ("aabb", "aabbcc", 0, 0),
            // A name that was changed.
            ("aabb", "aabc", 1, 1),
            // An iteration in which other rows are missing, too.
            ("aabbcc", "aad", 4, 1),
        ] {
            let text: Vec<char> = format!("{first}{second}").chars().collect();
            let rows: Vec<usize> = (0..text.len()).collect();
            let iterations = [&rows[..first.len()], &rows[first.len()..]];
            let all = first.len() as u64;
            let key = |row: usize| text[row];
            assert_eq!(missing_in_next(&iterations, key), (missing, all), "{first} {second}");
            assert_eq!(replaced_in_next(&iterations, key), (replaced, all), "{first} {second}");
        }
    }
}
