//! The optimizer on the host: two parameters of 100 and 300 bytes with Adam's two states each, in a step of one layer each.

use xmem_offload::{
    Action, BlockRole, Direction, Duplex, Graph, GraphStep, HostOptimizer, Layer, LayerId,
    LayerKind, Link, Memory, Policy, Run, StepBlock, StepId, Work, simulate,
};
use xmem_types::{BlockId, Bytes, Nanos};

/// Steps: residents, two forward passes, two backward passes that make gradients, the optimizer with a temporary block, and
/// the end, which frees gradients. `micro_batches` repeats the passes.
fn graph(micro_batches: usize) -> Graph {
    let block = |size, role| StepBlock {
        size: Bytes(size),
        role,
        writers: Vec::new(),
        readers: Vec::new(),
        backward: Vec::new(),
    };
    let blocks = vec![
        block(100, BlockRole::Persistent),
        block(300, BlockRole::Persistent),
        block(200, BlockRole::OptimizerState),
        block(600, BlockRole::OptimizerState),
        block(100, BlockRole::Gradient),
        block(300, BlockRole::Gradient),
        block(400, BlockRole::Data),
    ];
    let layer = |n| Layer { name: format!("fc{n}"), kind: LayerKind::Fc, inputs: Vec::new() };
    let step = |work, duration, actions| GraphStep { work, duration: Nanos(duration), actions };
    let alloc = |block| Action::Alloc(BlockId(block));
    let free = |block| Action::Free(BlockId(block));
    let mut steps = vec![step(Work::Other, 0, (0..4).map(alloc).collect())];
    for batch in 0..micro_batches {
        let makes = |gradient| if batch == 0 { vec![alloc(gradient)] } else { Vec::new() };
        steps.push(step(Work::Forward(LayerId(0)), 500, Vec::new()));
        steps.push(step(Work::Forward(LayerId(1)), 500, Vec::new()));
        steps.push(step(Work::Backward(LayerId(1)), 1000, makes(5)));
        steps.push(step(Work::Backward(LayerId(0)), 1000, makes(4)));
    }
    steps.push(step(Work::Optimizer, 50, vec![alloc(6), free(6)]));
    steps.push(step(Work::Other, 0, vec![free(4), free(5)]));
    Graph::new(vec![layer(0), layer(1)], steps, blocks).expect("a graph")
}

fn run(graph: &Graph, host: u64) -> Run {
    let link = Link { bandwidth: Bytes(1_000_000_000), latency: Nanos::ZERO, duplex: Duplex::Half };
    let policy = Policy::HostOptimizer(HostOptimizer { bandwidth: Bytes(host) });
    simulate(graph, policy, &link, Memory::Unlimited)
}

fn copies(run: &Run) -> Vec<(u32, Direction, i64, i64)> {
    let copy = |copy: &xmem_offload::Transfer| {
        (copy.block.0, copy.direction, copy.start.get(), copy.end.get())
    };
    run.transfers.iter().map(copy).collect()
}

#[test]
fn state_and_step_are_on_the_host() {
    let run = run(&graph(1), 1_000_000_000);
    assert_eq!(run.on_host, Bytes(800));
    assert_eq!(run.peak_live(), Bytes(800));
    // The host reads parameter, gradient and states, and writes parameter and states: 7 bytes for each of a parameter.
    assert_eq!(run.host_computes, Nanos(2800));
    use Direction::{ToDevice, ToHost};
    // The first gradient is copied while the backward pass goes on.
    assert_eq!(
        copies(&run),
        [
            (5, ToHost, 2000, 2300),
            (4, ToHost, 3000, 3100),
            (5, ToDevice, 5100, 5400),
            (4, ToDevice, 5800, 5900)
        ]
    );
    assert_eq!(run.step_time, Nanos(5900));
    assert_eq!(run.computing[StepId(5).index()], (Nanos(5900), Nanos(5900)));
}

#[test]
fn a_faster_host_takes_less_time() {
    let times: Vec<i64> =
        [1, 2, 10].map(|host| run(&graph(1), host * 1_000_000_000).step_time.get()).to_vec();
    assert!(times[0] > times[1] && times[1] > times[2], "{times:?}");
}

#[test]
fn gradients_that_are_added_up_are_copied_after_the_last_backward_pass() {
    let run = run(&graph(2), 1_000_000_000);
    let copies = copies(&run);
    assert!(copies[..2].iter().all(|&(_, _, start, _)| start >= 6000), "{copies:?}");
}

#[test]
fn without_an_optimizer_nothing_is_moved() {
    let graph = graph(1);
    let mut steps = graph.steps().to_vec();
    for step in &mut steps {
        if step.work == Work::Optimizer {
            step.work = Work::Other;
        }
    }
    let graph = Graph::new(graph.layers().to_vec(), steps, graph.blocks().to_vec());
    let run = run(&graph.expect("a graph"), 1);
    assert_eq!((run.on_host, run.transfers.len()), (Bytes::ZERO, 0));
}
