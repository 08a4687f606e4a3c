//! The operator tree against a slow search, and links between forward and backward.

use crate::support::{Detail, Recorder, flow};
use proptest::prelude::*;
use xmem_analyzer::{OpTree, analyze};
use xmem_trace::{FlowKind, OpKind, OpTable, SignatureId, Thread};
use xmem_types::{Nanos, OpId, Sym, ThreadIdx};

fn table(rows: &[(i64, i64, u32)]) -> OpTable {
    let mut ops = OpTable::default();
    for &(start, end, thread) in rows {
        ops.start.push(Nanos(start));
        ops.duration.push(Nanos(end - start));
        ops.name.push(Sym::EMPTY);
        ops.thread.push(ThreadIdx(thread));
        ops.kind.push(OpKind::Operator);
        ops.sequence.push(-1);
        ops.forward_thread.push(0);
        ops.signature.push(SignatureId(0));
    }
    ops
}

/// Random properly nested intervals: a node is split into children with gaps between them.
fn nested(depth: u32) -> impl Strategy<Value = Vec<(i64, i64)>> {
    let leaf = Just(vec![(0_i64, 10_000_i64)]);
    leaf.prop_recursive(depth, 60, 4, |inner| {
        prop::collection::vec((inner, 0_i64..3), 1..4).prop_map(|children| {
            let mut all = Vec::new();
            let mut at = 1;
            for (child, gap) in children {
                let width = child[0].1;
                all.extend(child.iter().map(|&(s, e)| (s + at, e + at)));
                at += width + gap;
            }
            let mut with_root = vec![(0, at + 1)];
            with_root.extend(all);
            with_root
        })
    })
}

proptest! {
    #[test]
    fn the_parent_is_the_smallest_interval_around(
        a in nested(4),
        b in nested(3),
        seed in any::<u64>(),
    ) {
        let mut rows: Vec<(i64, i64, u32)> = a.into_iter().map(|(s, e)| (s, e, 0)).collect();
        rows.extend(b.into_iter().map(|(s, e)| (s, e, 1)));
        rows.sort_by_key(|r| (r.0 as u64 ^ r.1 as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let tree = OpTree::build(&table(&rows));
        for (i, &(start, end, thread)) in rows.iter().enumerate() {
            let naive = rows
                .iter()
                .enumerate()
                .filter(|&(j, r)| j != i && r.2 == thread && r.0 <= start && end <= r.1)
                .filter(|(_, r)| (r.1 - r.0) > (end - start))
                .min_by_key(|(_, r)| r.1 - r.0)
                .map(|(j, _)| OpId::new(j));
            prop_assert_eq!(tree.parent(OpId::new(i)), naive);
            let inside = rows
                .iter()
                .filter(|r| r.2 == thread && start <= r.0 && r.1 <= end)
                .count() - 1;
            prop_assert_eq!(tree.descendants(OpId::new(i)).len(), inside);
            for child in tree.children(OpId::new(i)) {
                prop_assert_eq!(tree.parent(child), Some(OpId::new(i)));
            }
        }
        let mut all = tree.preorder().to_vec();
        all.sort_unstable();
        prop_assert_eq!(all, (0..rows.len()).map(OpId::new).collect::<Vec<_>>());
    }
}

#[test]
fn a_child_that_rounding_makes_outlast_its_parent_adopts_no_operator() {
    // Whole microseconds: the child [1, 11] in [0, 10]; the next sibling starts at 10.
    let tree = OpTree::build(&table(&[
        (0, 20_000, 0),
        (1_000, 10_000, 0),
        (2_000, 11_000, 0),
        (10_000, 12_000, 0),
    ]));
    assert_eq!(tree.parent(OpId(2)), Some(OpId(1)));
    assert_eq!(tree.parent(OpId(3)), Some(OpId(0)));
    assert_eq!(tree.end(OpId(2)), Nanos(10_000));
}

#[test]
fn an_annotation_that_crosses_an_operator_ends_nothing_early() {
    let tree = OpTree::build(&table(&[(0, 10_000, 0), (5_000, 90_000, 0), (50_000, 60_000, 0)]));
    assert_eq!(tree.parent(OpId(2)), Some(OpId(1)));
    assert_eq!(tree.end(OpId(1)), Nanos(90_000));
}

#[test]
fn where_two_threads_run_forward_the_links_decide() {
    let mut r = Recorder::new(Detail::Everything);
    let (sequence, ()) = r.differentiable("aten::relu", &[], |_| {});
    r.differentiable("aten::tanh", &[], |_| {});
    r.node("ReluBackward0", sequence, |_| {});
    let mut trace = r.trace;
    let process = trace.threads[0].process;
    let other = trace.strings.intern("2");
    trace.threads.push(Thread { process, thread: other });
    // The second operator ran on another thread, which counts from the same number.
    trace.ops.thread[1] = ThreadIdx(1);
    trace.ops.sequence[1] = sequence;
    let linked = |trace: &xmem_trace::Trace| {
        let (profile, _) = analyze(trace.clone());
        let node = (0..profile.op_count())
            .map(OpId::new)
            .find(|&o| profile.op_name(o).contains("evaluate_function"))
            .expect("a node");
        profile.autograd.forward_of(node).map(|f| profile.op_name(f).to_owned())
    };
    assert_eq!(linked(&trace).as_deref(), Some("aten::tanh"), "the latest, for want of links");
    let (forward, backward) = (trace.ops.start[0], trace.ops.start[3]);
    flow(&mut trace, 7, forward, ThreadIdx(0), FlowKind::Start);
    flow(&mut trace, 7, backward, ThreadIdx(0), FlowKind::Finish);
    assert_eq!(linked(&trace).as_deref(), Some("aten::relu"));
}
