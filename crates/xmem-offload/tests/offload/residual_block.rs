//! The residual block of Dymem's figures: times in milliseconds of computation and copy, 25/66 for the convolution of
//! 1 x 1, 76/68 for that of 3 x 3, 3 for the join.

use crate::networks::{Node, graph};
use xmem_offload::{
    Direction, Duplex, Graph, LayerKind, Link, Memory, Moves, Policy, Run, simulate,
};
use xmem_types::{Bytes, Nanos};

const MILLISECOND: i64 = 1_000_000;

/// Two convolutions in a row, and a join of the second with the input of the first. A byte takes a millisecond.
fn block() -> Graph {
    let node = |kind, inputs: &[usize], size, ms: i64| Node {
        kind,
        inputs: inputs.to_vec(),
        size,
        forward: ms * MILLISECOND,
        backward: ms * MILLISECOND,
    };
    graph(
        66,
        &[
            node(LayerKind::Conv, &[], 68, 25),
            node(LayerKind::Conv, &[0], 66, 76),
            node(LayerKind::Join, &[0, 1], 66, 3),
        ],
    )
}

fn run(policy: Policy) -> Run {
    let link = Link { bandwidth: Bytes(1000), latency: Nanos::ZERO, duplex: Duplex::Half };
    let run = simulate(&block(), policy, &link, Memory::Unlimited);
    assert_eq!(run.out_of_memory, None);
    run
}

fn starts(run: &Run) -> Vec<i64> {
    run.computing.iter().map(|&(start, _)| start.get() / MILLISECOND).collect()
}

#[test]
fn without_a_policy_nothing_waits() {
    let run = run(Policy::None);
    assert_eq!(starts(&run), [0, 0, 25, 101, 104, 107, 183]);
    assert_eq!(run.step_time, Nanos(208 * MILLISECOND));
    assert!(run.transfers.is_empty());
}

#[test]
fn a_barrier_holds_the_next_layer_until_the_copy_is_done() {
    let run = run(Policy::VdnnConv);
    // The copy of the input ends at 66. The output of the first convolution goes with its last reader, the join: from 142
    // to 210. It is fetched with the join's backward pass, to 281, and the input with the second convolution's.
    assert_eq!(starts(&run), [0, 0, 66, 142, 210, 278, 354]);
    let copies: Vec<(i64, i64)> = run
        .transfers
        .iter()
        .map(|copy| (copy.start.get() / MILLISECOND, copy.end.get() / MILLISECOND))
        .collect();
    assert_eq!(copies, [(0, 66), (142, 210), (210, 278), (278, 344)]);
    assert_eq!(run.step_time, Nanos(379 * MILLISECOND));
}

#[test]
fn without_barriers_layers_go_on_while_blocks_are_copied() {
    let run = run(Policy::Dymem(Moves::Paper));
    // The copies end at 66 and 134, the forward pass at 104: it waits once, before the backward pass.
    assert_eq!(starts(&run), [0, 0, 25, 101, 134, 202, 278]);
    assert_eq!(run.step_time, Nanos(303 * MILLISECOND));
    assert!(run.step_time < self::run(Policy::VdnnConv).step_time);
}

#[test]
fn on_one_stream_nothing_overlaps() {
    let run = run(Policy::Serial(Moves::Paper));
    assert_eq!(run.overlapped(), Nanos::ZERO);
    assert_eq!(run.step_time, run.compute() + run.copying());
    assert_eq!(run.step_time, Nanos((208 + 2 * (66 + 68)) * MILLISECOND));
    assert_eq!(run.moved(Direction::ToHost), Bytes(134));
    assert_eq!(run.pinned_peak(), Bytes(134));
}
