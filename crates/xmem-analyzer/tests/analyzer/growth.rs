//! Long and deep traces: what once took the square of their length or depth.

use crate::support::*;

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
