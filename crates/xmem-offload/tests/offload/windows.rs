//! What each policy moves, and when it brings it back: a chain of conv, pool, conv, act, conv, conv, in which every layer
//! needs its input in the backward pass. A step takes a microsecond, a copy nothing.

use crate::networks::{Node, graph};
use xmem_offload::{
    Direction, Duplex, Graph, LayerKind, Link, Memory, Moves, Policy, SuperNeurons, simulate,
};
use xmem_types::{Bytes, Nanos};

const PAPER: SuperNeurons =
    SuperNeurons { moves: Moves::Paper, tensor_cache: false, recompute: false };

fn chain() -> Graph {
    use LayerKind::{Act, Conv, Pool};
    let kinds = [Conv, Pool, Conv, Act, Conv, Conv];
    let nodes: Vec<Node> = kinds
        .into_iter()
        .enumerate()
        .map(|(n, kind)| Node {
            kind,
            inputs: n.checked_sub(1).into_iter().collect(),
            size: 8,
            forward: 1000,
            backward: 1000,
        })
        .collect();
    graph(8, &nodes)
}

/// Blocks in the order in which they are copied, each with the layer at whose computation it begins. Block n is the
/// input of layer n.
fn copies(policy: Policy, direction: Direction) -> Vec<(u32, usize)> {
    let graph = chain();
    let link = Link { bandwidth: Bytes(u64::MAX), latency: Nanos::ZERO, duplex: Duplex::Half };
    let run = simulate(&graph, policy, &link, Memory::Unlimited);
    let copies = run.transfers.iter().filter(|copy| copy.direction == direction);
    let layer = |at: Nanos| {
        let mut steps = run.computing.iter().enumerate();
        let step = steps.rfind(|(_, (start, end))| *start <= at && end > start);
        graph.steps()[step.expect("a step").0].work.layer().expect("a layer").index()
    };
    copies.map(|copy| (copy.block.0, layer(copy.issued))).collect()
}

#[test]
fn each_policy_moves_the_inputs_of_its_kinds_of_layers() {
    let moved = |policy| -> Vec<u32> {
        copies(policy, Direction::ToHost).into_iter().map(|(block, _)| block).collect()
    };
    assert_eq!(moved(Policy::None), [0; 0]);
    assert_eq!(moved(Policy::VdnnConv), [0, 2, 4, 5]);
    assert_eq!(moved(Policy::VdnnAll(Moves::Paper)), [0, 1, 2, 4, 5]);
    assert_eq!(moved(Policy::SuperNeurons(PAPER)), [0, 2, 4, 5]);
    assert_eq!(moved(Policy::Dymem(Moves::Paper)), [0, 1, 2, 3, 4, 5]);
    assert_eq!(moved(Policy::SaveOnCpu), [0, 1, 2, 3, 4, 5]);
    // With equal sets, only the schedules differ.
    let same = SuperNeurons::default();
    for policy in [
        Policy::Serial(Moves::Same),
        Policy::VdnnAll(Moves::Same),
        Policy::SuperNeurons(same),
        Policy::Dymem(Moves::Same),
    ] {
        assert_eq!(moved(policy), [0, 1, 2, 3, 4, 5], "{policy}");
    }
}

/// The first pair of each is fetched on demand, at the first layer of the backward pass.
#[test]
fn vdnn_looks_one_layer_ahead_and_no_farther_than_a_convolution() {
    let back = |policy| copies(policy, Direction::ToDevice);
    assert_eq!(back(Policy::VdnnConv)[1..], [(4, 5), (2, 4), (0, 2)]);
    assert_eq!(back(Policy::VdnnAll(Moves::Paper))[1..], [(4, 5), (2, 4), (1, 2), (0, 1)]);
}

#[test]
fn superneurons_prefetches_at_convolutions_up_to_the_one_before() {
    let back = copies(Policy::SuperNeurons(PAPER), Direction::ToDevice);
    assert_eq!(back[1..], [(4, 5), (2, 4), (0, 2)]);
}

/// While a convolution runs, one more; while another layer runs, two.
#[test]
fn dymem_keeps_two_convolutions_in_its_window() {
    let back = copies(Policy::Dymem(Moves::Paper), Direction::ToDevice);
    assert_eq!(back[1..], [(4, 5), (3, 5), (2, 4), (1, 4), (0, 3)]);
}

#[test]
fn what_is_moved_is_not_computed_again() {
    let graph = chain();
    let link = Link { bandwidth: Bytes(u64::MAX), latency: Nanos::ZERO, duplex: Duplex::Half };
    let [kept, again] = [false, true].map(|recompute| {
        let policy = Policy::SuperNeurons(SuperNeurons { recompute, ..PAPER });
        simulate(&graph, policy, &link, Memory::Unlimited)
    });
    // The output of the pooling layer is moved, as the input of a convolution; its input is the output of a
    // convolution. What is left is the output of the activation, which is moved, too.
    assert_eq!(kept.recomputed, Nanos::ZERO);
    assert_eq!(again.recomputed, Nanos::ZERO);
    assert_eq!(again.moved(Direction::ToHost), kept.moved(Direction::ToHost));
}

/// conv, act, act, conv: the output of the first activation is dropped, and made of the convolution's output.
#[test]
fn the_output_of_an_activation_is_made_again_of_its_input() {
    use LayerKind::{Act, Conv};
    let nodes: Vec<Node> = [Conv, Act, Act, Conv]
        .into_iter()
        .enumerate()
        .map(|(n, kind)| Node {
            kind,
            inputs: n.checked_sub(1).into_iter().collect(),
            size: 8,
            forward: 1000 + n as i64,
            backward: 1000,
        })
        .collect();
    let graph = graph(8, &nodes);
    let link = Link { bandwidth: Bytes(u64::MAX), latency: Nanos::ZERO, duplex: Duplex::Half };
    let policy = Policy::SuperNeurons(SuperNeurons { recompute: true, ..PAPER });
    let run = simulate(&graph, policy, &link, Memory::Unlimited);
    assert_eq!(run.recomputed, Nanos(1001));
}
