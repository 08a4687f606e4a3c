//! Dymem's groups (section 3.3): a fork to two branches, of which one waits for the join.

use crate::networks::{Node, graph};
use xmem_offload::{Duplex, Group, LayerKind, Link, Memory, Policy, simulate};
use xmem_types::{BlockId, Bytes, Nanos};

#[test]
fn what_waits_for_a_join_is_temporary_and_what_fully_connected_layers_make_is_reclaimed() {
    use LayerKind::{Conv, Fc, Join};
    let node = |kind, inputs: &[usize]| Node {
        kind,
        inputs: inputs.to_vec(),
        size: 1,
        forward: 1,
        backward: 1,
    };
    let graph = graph(
        1,
        &[
            node(Conv, &[]),
            // A branch of one layer, which waits while the other one runs.
            node(Conv, &[0]),
            node(Conv, &[0]),
            node(Conv, &[2]),
            node(Join, &[1, 3]),
            node(Fc, &[4]),
        ],
    );
    let link = Link { bandwidth: Bytes(1), latency: Nanos::ZERO, duplex: Duplex::Half };
    let run = simulate(&graph, Policy::None, &link, Memory::Unlimited);
    let group = |block: u32| {
        let piece = run.pieces.iter().find(|piece| piece.block == BlockId(block));
        piece.expect("it is allocated").group
    };
    // Block n + 1 is the output of layer n; those from 7 on are gradients.
    let expected = [
        (1, Group::Temporary),
        (2, Group::Temporary),
        (3, Group::Movable),
        (4, Group::Movable),
        (5, Group::Movable),
        (6, Group::Reclaimed),
        (7, Group::Movable),
        (8, Group::Movable),
    ];
    for (block, expected) in expected {
        assert_eq!(group(block), expected, "block {block}");
    }
}
