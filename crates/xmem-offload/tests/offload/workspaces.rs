//! Workspaces of convolutions in little memory, and steps whose sizes vary.

use std::collections::BTreeSet;
use xmem_offload::{
    Action, BlockRole, Duplex, Graph, GraphStep, Jitter, Layer, LayerId, LayerKind, Link, Memory,
    Moves, Placement, Policy, StepBlock, StepId, Work, WorkspaceCounts, WorkspaceRule, grown,
    jitter, simulate, vdnn_dynamic,
};
use xmem_planner::Planner;
use xmem_types::{BlockId, Bytes, Nanos};

/// Convolutions in a row, each with a workspace of so many MiB while it runs, and an output of 1 MiB that stays.
fn convolutions(workspaces: &[u64]) -> Graph {
    let block = |size, role, step| StepBlock {
        size: Bytes::mib(size),
        role,
        writers: vec![step],
        readers: Vec::new(),
        backward: Vec::new(),
    };
    let (mut layers, mut steps, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
    for (n, &workspace) in workspaces.iter().enumerate() {
        let layer = LayerId::new(n);
        layers.push(Layer { name: format!("conv{n}"), kind: LayerKind::Conv, inputs: Vec::new() });
        let [output, space] = [2 * n, 2 * n + 1].map(BlockId::new);
        blocks.push(block(1, BlockRole::Data, StepId::new(n)));
        blocks.push(block(workspace, BlockRole::Workspace, StepId::new(n)));
        steps.push(GraphStep {
            work: Work::Forward(layer),
            duration: Nanos(10),
            actions: vec![Action::Alloc(output), Action::Alloc(space), Action::Free(space)],
        });
    }
    Graph::new(layers, steps, blocks).expect("a graph")
}

fn link() -> Link {
    Link { bandwidth: Bytes(1 << 30), latency: Nanos::ZERO, duplex: Duplex::Half }
}

fn runs_in(graph: &Graph, mebibytes: u64) -> bool {
    let mut space = Placement::BestFit.space(Some(Bytes::mib(mebibytes)));
    let run = simulate(graph, Policy::None, &link(), Memory::Limited(space.as_mut()));
    run.out_of_memory.is_none()
}

#[test]
fn vdnn_dynamic_keeps_the_workspaces_that_fit() {
    // The outputs take 1, 2, 3 and 4 MiB when the convolutions run.
    let graph = convolutions(&[7, 9, 2, 5]);
    for (capacity, without) in [
        (11, &[][..]),
        (10, &[1]),
        (9, &[1]),
        (8, &[1, 3]),
        (7, &[0, 1, 3]),
        (4, &[0, 1, 2, 3]),
        // Nothing runs.
        (3, &[0, 1, 2, 3]),
    ] {
        let capacity = Bytes::mib(capacity);
        let chosen = vdnn_dynamic(&graph, Moves::Same, &link(), Placement::BestFit, capacity);
        let expected: BTreeSet<StepId> = without.iter().copied().map(StepId).collect();
        assert_eq!(chosen.without, expected, "{capacity}");
        let counts = WorkspaceCounts::of(&graph, &chosen.graph(&graph));
        assert_eq!((counts.without, counts.whole), (without.len(), 4 - without.len()));
        assert_eq!(counts.smaller, 0);
    }
}

#[test]
fn a_limit_of_workspaces_grows_as_long_as_the_step_runs() {
    let graph = convolutions(&[7, 9, 2, 5]);
    for (capacity, largest, counts) in [
        (11, 9, (4, 0, 0)),
        (10, 8, (3, 1, 0)),
        (8, 4, (1, 3, 0)),
        (4, 0, (0, 0, 4)),
        (3, 0, (0, 0, 4)),
    ] {
        let memory = Bytes::mib(capacity);
        let grown = grown(&graph, Policy::None, &link(), Placement::BestFit, memory);
        let found = WorkspaceCounts::of(&graph, &grown);
        assert_eq!(found.largest, Bytes::mib(largest), "{capacity}");
        assert_eq!((found.whole, found.smaller, found.without), counts, "{capacity}");
        assert_eq!(runs_in(&grown, capacity), capacity >= 4);
    }
}

/// Dymem, section 2: convolutions without workspaces take 60 % longer on average.
#[test]
fn convolutions_with_less_workspace_are_slower_once() {
    let graph = convolutions(&[7, 9, 2, 5]);
    let times = |graph: &Graph| -> Vec<i64> {
        graph.steps().iter().map(|step| step.duration.get()).collect()
    };
    let cut = graph.with_workspaces(|_, size| size.min(Bytes::mib(5)));
    assert_eq!(times(&cut), [16, 16, 10, 10]);
    assert_eq!(times(&cut.without_workspaces()), [16; 4]);
    assert_eq!(times(&graph.with_workspaces(|_, size| size)), [10; 4]);
}

#[test]
fn rules_for_workspaces_have_names() {
    for (text, rule) in [
        ("recorded", WorkspaceRule::Recorded),
        ("none", WorkspaceRule::Without),
        ("grow", WorkspaceRule::Grow),
        ("fixed:16777216", WorkspaceRule::AtMost(Bytes::mib(16))),
    ] {
        assert_eq!(text.parse(), Ok(rule));
        assert_eq!(rule.to_string(), text);
    }
    assert_eq!("fixed:16MiB".parse(), Ok(WorkspaceRule::AtMost(Bytes::mib(16))));
    for text in ["", "fixed", "fixed:", "fixed:-1", "16MiB"] {
        assert!(text.parse::<WorkspaceRule>().is_err(), "{text}");
    }
}

#[test]
fn steps_with_other_sizes_need_about_as_much() {
    let graph = convolutions(&[7, 9, 2, 5]);
    let with = |share, placement, capacity| {
        let sizes = Jitter { share, runs: 200, seed: 3 };
        let tried = jitter(&graph, Policy::None, &link(), placement, capacity, &sizes);
        tried.expect("small blocks")
    };
    let peak = Bytes::mib(11);
    let some = with(0.1, Placement::BestFit, Some(peak)).expect("an online placement");
    assert_eq!(some.needs.len(), 200);
    assert!(some.needs.is_sorted() && some.needs[0] < peak && some.most() > peak);
    assert!(some.most().get() <= peak.get() * 11 / 10 + 8 * 512);
    // A pool without a margin is too small for some; one with a tenth more for none.
    let failures = some.failures(peak);
    assert!((40..160).contains(&failures), "{failures}");
    assert_eq!(some.failures(Bytes(peak.get() * 11 / 10 + 8 * 512)), 0);
    // Nothing is released that could be waited for.
    assert_eq!(some.out_of_memory, failures);
    let more = with(0.5, Placement::BestFit, None).expect("an online placement");
    assert!(more.most() > some.most() && more.needs[0] < some.needs[0]);
    assert_eq!(with(0.1, Placement::BestFit, Some(peak)), Some(some), "the seed decides");
    assert_eq!(with(0.1, Placement::Planned(Planner::BestFit), None), None);
}
