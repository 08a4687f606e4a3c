//! Policies with a budget: what waits on the device never exceeds it, and what was moved or dropped is there when it is used.

use crate::networks::{Node, graph};
use crate::properties::{any_graph, any_link, check};
use proptest::prelude::*;
use xmem_offload::{
    Checkpoint, Direction, Duplex, EventKind, Graph, LayerKind, Link, Memory, OffloadActivations,
    Policy, Run, StepId, simulate,
};
use xmem_types::{Bytes, Nanos};

fn run(graph: &Graph, policy: Policy, link: &Link) -> Run {
    simulate(graph, policy, link, Memory::Unlimited)
}

fn offload(budget: Bytes) -> Policy {
    Policy::OffloadActivations(OffloadActivations { budget })
}

fn checkpoint(budget: Bytes) -> Policy {
    Policy::Checkpoint(Checkpoint { budget })
}

/// The most bytes of saved tensors that wait on the device while a step computes, from the events of a run.
fn most_waiting(graph: &Graph, run: &Run) -> Bytes {
    let layer = |step: usize| graph.steps()[step].work.layer();
    let waiting = |step: usize| -> Bytes {
        let (start, end) = run.computing[step];
        let waits = graph.ids().filter(|&id| {
            let block = graph.block(id);
            let last = block.readers.last().max(block.writers.last()).copied();
            let (Some(last), Some(&first)) = (last, block.backward.first()) else { return false };
            let (last, first) = (last.index(), first.index());
            let own = [layer(last), layer(first)];
            let has_others =
                (last + 1..first).filter_map(layer).any(|other| !own.contains(&Some(other)));
            last < step && step < first && has_others
        });
        let is_there = |id| {
            let rows = (0..).zip(&run.pieces).filter(move |(_, piece)| piece.block == id);
            let at = |row: u32, kind| {
                let event = run.events.iter().find(|e| e.piece.0 == row && e.kind == kind);
                event.map(|event| event.time)
            };
            rows.map(|(row, _)| row).any(|row| {
                let freed = at(row, EventKind::Free).unwrap_or(Nanos::MAX);
                at(row, EventKind::Alloc).is_some_and(|from| from < end) && freed > start
            })
        };
        waits.filter(|&id| is_there(id)).map(|id| graph.block(id).size).sum()
    };
    (0..graph.steps().len()).map(waiting).max().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn offloaded_activations_never_exceed_their_budget_and_come_back_before_their_use(
        graph in any_graph(), link in any_link(), share in 0u64..=120
    ) {
        let budget = Bytes(graph.saved().get() * share / 100);
        let run = run(&graph, offload(budget), &link);
        check(&graph, &link, offload(budget), &run)?;
        let waiting = run.waiting.expect("a budget");
        prop_assert!(waiting.most <= budget);
        prop_assert!(most_waiting(&graph, &run) <= budget);
        prop_assert!(run.moved(Direction::ToHost) + budget >= graph.saved());
        if share >= 100 {
            prop_assert_eq!(run.moved(Direction::ToHost), Bytes::ZERO);
        }
    }

    #[test]
    fn checkpoints_are_within_their_budget_where_that_is_possible(
        graph in any_graph(), link in any_link(), share in 0u64..=120
    ) {
        let budget = Bytes(graph.saved().get() * share / 100);
        let run = self::run(&graph, checkpoint(budget), &link);
        check(&graph, &link, checkpoint(budget), &run)?;
        let most = run.waiting.expect("a budget").most;
        prop_assert!(most_waiting(&graph, &run) <= most);
        prop_assert!(run.transfers.is_empty());
        if most > budget {
            let least = self::run(&graph, checkpoint(Bytes::ZERO), &link);
            prop_assert!(least.waiting.expect("a budget").most > budget);
        }
        if share >= 100 {
            prop_assert_eq!(run.recomputed, Nanos::ZERO);
        }
    }
}

/// A chain of MLP, activation, MLP, activation, MLP; a byte of a block takes a nanosecond to copy.
fn chain() -> Graph {
    use LayerKind::{Act, Mlp};
    let node = |n: usize, (kind, forward): (LayerKind, i64)| Node {
        kind,
        inputs: n.checked_sub(1).into_iter().collect(),
        size: 10,
        forward,
        backward: 2 * forward,
    };
    let layers = [(Mlp, 20), (Act, 2), (Mlp, 20), (Act, 2), (Mlp, 20)];
    let nodes: Vec<Node> = layers.into_iter().enumerate().map(|(n, of)| node(n, of)).collect();
    graph(10, &nodes)
}

fn link() -> Link {
    Link { bandwidth: Bytes(1_000_000_000), latency: Nanos::ZERO, duplex: Duplex::Half }
}

/// The input of the last layer is needed at once, and does not wait: four blocks of ten bytes do.
#[test]
fn a_budget_of_one_block_overlaps_copies_and_one_of_none_does_not() {
    let graph = chain();
    assert_eq!(graph.saved(), Bytes(40));
    let figures = |budget| {
        let run = run(&graph, offload(Bytes(budget)), &link());
        (run.moved(Direction::ToHost).get(), run.step_time.get(), run.overlapped().get())
    };
    assert_eq!(graph.compute(), Nanos(192));
    assert_eq!(figures(40), (0, 192, 0));
    assert_eq!(figures(20), (20, 192, 40));
    assert_eq!(figures(10).0, 30);
    assert!(figures(10).1 < figures(0).1);
}

#[test]
fn what_costs_least_time_for_its_bytes_is_computed_again() {
    let graph = chain();
    let figures = |budget| {
        let run = run(&graph, checkpoint(Bytes(budget)), &link());
        (run.recomputed.get(), run.waiting.expect("a budget").most.get())
    };
    assert_eq!(figures(40), (0, 40));
    // The output of the first activation; that of the second does not wait.
    assert_eq!(figures(30), (2, 30));
    // Then that of a matrix product.
    assert_eq!(figures(20), (22, 20));
}

/// A step of the graph does not count what it uses itself.
#[test]
fn what_a_step_uses_does_not_wait() {
    let graph = chain();
    let run = run(&graph, Policy::None, &link());
    assert_eq!(run.waiting, None);
    let last_forward = StepId::new(graph.layers().len());
    let (start, _) = run.computing[last_forward.index()];
    assert_eq!(start, Nanos(44));
    assert_eq!(most_waiting(&graph, &run), Bytes(40));
}
