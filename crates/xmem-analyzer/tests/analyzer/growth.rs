//! Long and deep traces: what once took the square of their length or depth.

use crate::support::*;
use xmem_trace::FlowKind;
use xmem_types::{Nanos, ThreadIdx};

/// Rounds of the long tests: their square is some ten thousand million.
const ROUNDS: usize = 100_000;

/// Modules within modules, each of which allocates.
fn nested(r: &mut Recorder, depth: usize) {
    r.call(&format!("nn.Module: Block_{depth}"), |r| {
        r.op("aten::relu", &[8], |r| r.alloc(8));
        if depth > 0 {
            nested(r, depth - 1);
        }
    });
}

#[test]
fn paths_of_deeply_nested_modules_take_no_more_than_their_number() {
    const DEPTH: usize = 2_000;
    let mut r = Recorder::new(Detail::Everything);
    nested(&mut r, DEPTH - 1);
    let (p, _) = done(r);
    let texts: usize = p.symbols().map(|(_, text)| text.len()).sum();
    assert!(texts < DEPTH * 1_500, "{texts} bytes of names");
    let path = |row: usize| p.text(p.blocks[row].module).split(" > ").collect::<Vec<_>>();
    assert_eq!(path(1), ["Block_1999", "Block_1998"]);
    assert_eq!(path(65).len(), 66);
    let deepest = path(DEPTH - 1);
    assert_eq!((deepest.len(), &deepest[64..]), (67, &["Block_1935", "…", "Block_0"][..]));
}

#[test]
fn a_hundred_thousand_steps_without_annotation_are_put_in_at_once() {
    let mut r = Recorder::new(Detail::Everything);
    let weight = r.parameter(100);
    for _ in 0..ROUNDS {
        let gradient = round(&mut r, weight);
        r.op("aten::add_", &[weight.elements], |_| {});
        r.free(gradient);
    }
    let (p, notes) = done(r);
    assert_eq!(p.iterations.len(), ROUNDS);
    assert_eq!(notes.get("optimizer-by-writes").map(|d| d.count), Some(ROUNDS as u64));
}

#[test]
fn a_hundred_thousand_clearings_that_nothing_marks_are_put_in_at_once() {
    let mut r = Recorder::new(Detail::Everything);
    let weight = r.parameter(100);
    let mut gradient = None;
    for _ in 0..ROUNDS {
        let x = batch(&mut r);
        gradient.take().into_iter().for_each(|gradient| r.free(gradient));
        gradient = Some(round(&mut r, weight));
        r.annotation("Optimizer.step#Lion.step", |r| r.op("aten::add_", &[100], |_| {}));
        r.free(x);
    }
    let (_, notes) = done(r);
    let clearings = notes.get("zero-grad-by-frees").map(|d| d.count);
    assert_eq!(clearings, Some(ROUNDS as u64 - 1));
}

#[test]
fn a_hundred_thousand_steps_with_closures_are_seen_through_at_once() {
    let mut r = Recorder::new(Detail::Everything);
    let weight = r.parameter(100);
    for _ in 0..ROUNDS {
        r.annotation("Optimizer.step#LBFGS.step", |r| {
            let gradient = round(r, weight);
            r.op("aten::add_", &[weight.elements], |_| {});
            r.free(gradient);
        });
    }
    let (p, _) = done(r);
    assert_eq!(p.iterations.len(), ROUNDS);
}

#[test]
fn a_hundred_thousand_marked_calls_of_a_model_are_told_apart_at_once() {
    let mut r = Recorder::new(Detail::Everything);
    for number in 0..ROUNDS {
        let loading = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        let x = r.annotation(loading, batch);
        r.op("aten::relu", &[x.elements], |_| {});
        r.iteration_ends(number);
        r.free(x);
    }
    let (p, _) = done(r);
    assert_eq!(p.iterations.len(), ROUNDS);
}

#[test]
fn links_of_a_hundred_thousand_operators_at_the_same_time_are_followed_at_once() {
    let mut r = Recorder::new(Detail::Everything);
    for _ in 0..ROUNDS {
        r.differentiable("aten::relu", &[8], |_| {});
    }
    let mut trace = r.trace;
    trace.threads.push(trace.threads[0].clone());
    for row in 0..ROUNDS {
        let thread = ThreadIdx((row % 2) as u32);
        trace.ops.thread[row] = thread;
        trace.ops.start[row] = Nanos::ZERO;
        trace.ops.duration[row] = Nanos::ZERO;
        for kind in [FlowKind::Start, FlowKind::Finish] {
            flow(&mut trace, row as u64, Nanos::ZERO, thread, kind);
        }
    }
    let (p, _) = xmem_analyzer::analyze(trace);
    assert_eq!(p.op_count(), ROUNDS);
}

/// Forward and backward of one weight; its gradient comes back.
fn round(r: &mut Recorder, weight: Tensor) -> Tensor {
    let inputs = [50, weight.elements];
    let (sequence, out) = r.differentiable("aten::linear", &inputs, |r| r.alloc(50));
    let gradient = r.node("AddmmBackward0", sequence, |r| {
        let gradient = r.op("aten::mm", &[], |r| r.alloc(weight.elements));
        r.free(out);
        gradient
    });
    r.accumulate(gradient, false);
    gradient
}
