//! The invariants of every simulation, on small networks made by chance.

use crate::networks::{Node, graph};
use proptest::prelude::*;
use xmem_offload::{
    Checkpoint, Direction, Duplex, EventKind, Graph, LayerKind, Link, Memory, Moves,
    OffloadActivations, PieceId, Placed, Placement, Policy, Run, Selection, SuperNeurons,
    depth_first, place, simulate, simulate_within,
};
use xmem_planner::Limits;
use xmem_types::{Bytes, Nanos};

pub(crate) fn nodes(kinds: &'static [LayerKind], joins: bool) -> impl Strategy<Value = Vec<Node>> {
    let node = (prop::sample::select(kinds), 0usize..4, 0usize..4, 1u64..60, 0i64..50, 0i64..50);
    prop::collection::vec(node, 1..14).prop_map(move |drawn| {
        let mut nodes: Vec<Node> = Vec::new();
        for (n, (kind, back, also, size, forward, backward)) in drawn.into_iter().enumerate() {
            let before = |back: usize| n.checked_sub(1 + if joins { back } else { 0 });
            let mut inputs: Vec<usize> = before(back).or(n.checked_sub(1)).into_iter().collect();
            let second = before(also).filter(|second| joins && !inputs.contains(second));
            let kind = match second {
                Some(second) if kind == LayerKind::Join => {
                    inputs.push(second);
                    kind
                }
                _ if kind == LayerKind::Join => LayerKind::Act,
                _ => kind,
            };
            nodes.push(Node { kind, inputs, size, forward, backward });
        }
        nodes
    })
}

pub(crate) fn any_graph() -> impl Strategy<Value = Graph> {
    (nodes(&LayerKind::ALL, true), 1u64..60).prop_map(|(nodes, input)| graph(input, &nodes))
}

fn chain() -> impl Strategy<Value = Graph> {
    use LayerKind::{Act, Conv, Norm, Pool};
    (nodes(&[Act, Conv, Norm, Pool], false), 1u64..60)
        .prop_map(|(nodes, input)| graph(input, &nodes))
}

pub(crate) fn any_link() -> impl Strategy<Value = Link> {
    (1u64..4_000_000_000, 0i64..20, prop::bool::ANY).prop_map(|(bandwidth, latency, full)| Link {
        bandwidth: Bytes(bandwidth),
        latency: Nanos(latency),
        duplex: if full { Duplex::Full } else { Duplex::Half },
    })
}

/// All policies, with the options of SuperNeurons that need no capacity.
fn policies() -> Vec<Policy> {
    let paper = Moves::Paper;
    let recompute = SuperNeurons { recompute: true, ..SuperNeurons::default() };
    let mut all = Policy::ALL.to_vec();
    all.extend([
        Policy::SuperNeurons(recompute),
        Policy::SuperNeurons(SuperNeurons { moves: paper, ..recompute }),
        Policy::Serial(paper),
        Policy::VdnnAll(paper),
        Policy::Dymem(paper),
    ]);
    for budget in [Bytes(20), Bytes(100)] {
        all.push(Policy::OffloadActivations(OffloadActivations { budget }));
        all.push(Policy::Checkpoint(Checkpoint { budget }));
    }
    all
}

fn run(graph: &Graph, policy: Policy, link: &Link) -> Run {
    simulate(graph, policy, link, Memory::Unlimited)
}

pub(crate) fn check(
    graph: &Graph,
    link: &Link,
    policy: Policy,
    run: &Run,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(run.out_of_memory, None);
    for direction in [Direction::ToHost, Direction::ToDevice] {
        let mut end = Nanos::ZERO;
        for copy in &run.transfers {
            if link.duplex == Duplex::Half || copy.direction == direction {
                prop_assert!(copy.start >= end && copy.start >= copy.issued, "one at a time");
                prop_assert_eq!(copy.end, copy.start + link.time(copy.size));
                end = copy.end;
            }
        }
    }
    prop_assert_eq!(run.moved(Direction::ToHost), run.moved(Direction::ToDevice));
    let (compute, copying) = (run.compute(), run.copying());
    prop_assert_eq!(compute, graph.compute() + run.recomputed);
    prop_assert!(run.step_time >= compute.max(copying));
    prop_assert!(run.step_time <= compute + copying);
    prop_assert!(run.overlapped() <= compute.min(copying));
    check_uses(graph, run)?;
    if matches!(policy, Policy::None | Policy::Serial(_) | Policy::SaveOnCpu) {
        prop_assert_eq!(run.overlapped(), Nanos::ZERO);
    }
    Ok(())
}

/// A block is on the device whenever a step uses it, and while it is copied.
fn check_uses(graph: &Graph, run: &Run) -> Result<(), TestCaseError> {
    for id in graph.ids() {
        let block = graph.block(id);
        let pieces = || (0..).zip(&run.pieces).filter(|(_, piece)| piece.block == id);
        let spans: Vec<(Nanos, Nanos)> = pieces()
            .map(|(row, _)| {
                let at = |kind| {
                    let event = run.events.iter().find(|e| e.piece.0 == row && e.kind == kind);
                    event.map(|event| event.time)
                };
                let start = at(EventKind::Alloc).expect("it is allocated");
                (start, at(EventKind::Free).unwrap_or(Nanos::MAX))
            })
            .collect();
        prop_assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "not twice there");
        let uses = block.writers.iter().chain(&block.readers).chain(&block.backward);
        for step in uses {
            let (start, end) = run.computing[step.index()];
            let is_there = |&(from, to): &(Nanos, Nanos)| from <= start && end <= to;
            prop_assert!(spans.iter().any(is_there), "{id:?} {step:?} {spans:?} {start}-{end}");
        }
        for copy in run.transfers.iter().filter(|copy| copy.block == id) {
            let is_there = |&(from, to): &(Nanos, Nanos)| from <= copy.start && copy.end <= to;
            prop_assert!(spans.iter().any(is_there), "a copy of {id:?}");
        }
    }
    Ok(())
}

/// No live piece lies on another, and none ends above the peak.
fn check_addresses(run: &Run, placed: &Placed) -> Result<(), TestCaseError> {
    let mut live: Vec<(PieceId, Bytes, Bytes)> = Vec::new();
    for event in &run.events {
        let size = run.pieces[event.piece.index()].size;
        match (event.kind, placed.addresses[event.piece.index()]) {
            (EventKind::Alloc, Some(start)) => {
                let end = start + size;
                prop_assert!(end <= placed.peak, "{} {end} {}", placed.placement, placed.peak);
                let is_apart = |&(_, from, to): &(_, Bytes, Bytes)| end <= from || to <= start;
                prop_assert!(live.iter().all(is_apart), "{}: {live:?}", placed.placement);
                live.push((event.piece, start, end));
            }
            (EventKind::Alloc, None) => {
                let has_none = placed.placement == Placement::Gtbm;
                prop_assert!(has_none || size == Bytes::ZERO, "{}", placed.placement);
            }
            (EventKind::Free, _) => live.retain(|&(piece, ..)| piece != event.piece),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn no_policy_loses_a_block_and_streams_do_one_thing_at_a_time(
        graph in any_graph(), link in any_link()
    ) {
        for policy in policies() {
            check(&graph, &link, policy, &run(&graph, policy, &link))?;
        }
    }

    #[test]
    fn a_link_without_limits_costs_no_time(graph in any_graph()) {
        let link = Link { bandwidth: Bytes(u64::MAX), latency: Nanos::ZERO, duplex: Duplex::Half };
        for policy in Policy::ALL {
            let run = run(&graph, policy, &link);
            // A copy takes a nanosecond at least.
            let slack = Nanos(run.transfers.len() as i64);
            prop_assert!(run.step_time <= graph.compute() + run.recomputed + slack, "{policy}");
        }
    }

    #[test]
    fn without_a_link_dymem_keeps_everything_until_the_forward_pass_ends(graph in any_graph()) {
        let link = Link { bandwidth: Bytes(1), latency: Nanos::ZERO, duplex: Duplex::Half };
        let live = |run: &Run| -> Vec<Bytes> {
            let forward = 1 + graph.layers().len();
            run.live().filter(|(event, _)| event.step.index() < forward).map(|(_, live)| live).collect()
        };
        let (none, dymem) = (run(&graph, Policy::None, &link), run(&graph, Policy::Dymem(Moves::Same), &link));
        // The last step ends with the copies; what they release comes after its own events.
        let (none, dymem) = (live(&none), live(&dymem));
        prop_assert!(dymem.starts_with(&none));
    }

    #[test]
    fn vdnn_needs_no_more_if_it_moves_more(graph in any_graph(), link in any_link()) {
        let peak = |policy| run(&graph, policy, &link).peak_live();
        prop_assert!(peak(Policy::VdnnAll(Moves::Same)) <= peak(Policy::VdnnConv));
        prop_assert!(peak(Policy::VdnnConv) <= peak(Policy::None));
    }

    #[test]
    fn gtbm_is_best_fit_where_nothing_forks(graph in chain(), link in any_link()) {
        for policy in policies() {
            let run = run(&graph, policy, &link);
            let place = |placement| place(&run, placement, &Limits::default()).expect("placed");
            prop_assert_eq!(place(Placement::Gtbm).series, place(Placement::BestFit).series);
        }
    }

    #[test]
    fn no_placement_needs_less_than_what_is_live(graph in any_graph(), link in any_link()) {
        for policy in [Policy::None, Policy::VdnnAll(Moves::Same), Policy::Dymem(Moves::Same)] {
            let run = run(&graph, policy, &link);
            let planned = Placement::Planned(xmem_planner::Planner::Bump);
            for placement in Placement::ONLINE.into_iter().chain([planned]) {
                let placed = place(&run, placement, &Limits::default()).expect("placed");
                prop_assert!(placed.peak >= placed.lower_bound);
                prop_assert_eq!(placed.lower_bound, run.peak_live());
                prop_assert!(placed.series.iter().all(|sample| sample.used >= sample.live));
                check_addresses(&run, &placed)?;
            }
        }
    }

    #[test]
    fn a_capacity_is_kept_or_there_is_an_out_of_memory(
        graph in any_graph(), link in any_link(), share in 0u64..=100
    ) {
        let cached = SuperNeurons { tensor_cache: true, ..SuperNeurons::default() };
        for policy in policies().into_iter().chain([Policy::SuperNeurons(cached)]) {
            let free = run(&graph, policy, &link);
            let capacity = Bytes(free.peak_live().get() * share / 100);
            let mut space = Placement::FirstFit.space(Some(capacity));
            let limited = simulate(&graph, policy, &link, Memory::Limited(space.as_mut()));
            prop_assert!(limited.peak_live() <= capacity);
            if limited.out_of_memory.is_none() {
                prop_assert_eq!(limited.moved(Direction::ToHost), limited.moved(Direction::ToDevice));
                check_uses(&graph, &limited)?;
            }
        }
    }

    #[test]
    fn what_runs_in_a_capacity_is_placed_in_it(
        graph in any_graph(), link in any_link(), share in 100u64..=250
    ) {
        for policy in policies() {
            let live = run(&graph, policy, &link).peak_live();
            let capacity = Bytes(live.get() * share / 100);
            for placement in Placement::ONLINE {
                let limits = Limits::default();
                let (limited, placed) =
                    simulate_within(&graph, policy, &link, placement, capacity, &limits).expect("placed");
                prop_assert!(placed.peak <= capacity, "{} {}", policy.name(), placement);
                prop_assert_eq!(placed.series.len(), limited.events.len());
                prop_assert!(placed.series.iter().all(|sample| sample.used >= sample.live));
                check_addresses(&limited, &placed)?;
            }
        }
    }

    #[test]
    fn room_for_everything_changes_nothing(graph in any_graph(), link in any_link()) {
        for policy in policies() {
            let mut space = Placement::BestFit.space(Some(Bytes::gib(1)));
            let limited = simulate(&graph, policy, &link, Memory::Limited(space.as_mut()));
            prop_assert_eq!(limited, run(&graph, policy, &link));
        }
    }

    #[test]
    fn depth_first_order_computes_the_same_layers(graph in any_graph(), link in any_link()) {
        let ordered = depth_first(&graph).expect("an order");
        prop_assert_eq!(ordered.compute(), graph.compute());
        prop_assert_eq!(ordered.blocks().len(), graph.blocks().len());
        check(&ordered, &link, Policy::Dymem(Moves::Same), &run(&ordered, Policy::Dymem(Moves::Same), &link))?;
        // An order that is depth first stays as it is.
        let again = depth_first(&ordered).expect("an order");
        prop_assert_eq!(again.layers(), ordered.layers());
    }

    #[test]
    fn only_blocks_with_a_use_in_both_passes_are_moved(graph in any_graph()) {
        for policy in Policy::ALL {
            for offload in Selection::new(&graph, policy).offloads {
                prop_assert!(offload.with <= offload.last_forward);
                prop_assert!(offload.last_forward < offload.first_backward);
            }
        }
    }
}
