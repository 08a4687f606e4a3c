//! Small training steps, written as a list of layers.

use xmem_offload::{
    Action, BlockRole, Graph, GraphStep, Layer, LayerId, LayerKind, StepBlock, StepId, Work,
};
use xmem_types::{BlockId, Bytes, Nanos};

/// A layer of a network: it reads outputs of layers before it, or the input of the network if there are none, and
/// writes one output. Its backward pass needs what it has read.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: LayerKind,
    pub(crate) inputs: Vec<usize>,
    pub(crate) size: u64,
    pub(crate) forward: i64,
    pub(crate) backward: i64,
}

/// Block 0 is the input of the network, block 1 + n the output of node n, and those after them the gradients of the
/// outputs. Joins need nothing in the backward pass.
pub(crate) fn graph(input: u64, nodes: &[Node]) -> Graph {
    let count = nodes.len();
    let forward = |n: usize| StepId::new(1 + n);
    let backward = |n: usize| StepId::new(2 * count - n);
    let block = |size: u64, writers| StepBlock {
        size: Bytes(size),
        role: BlockRole::Data,
        writers,
        readers: Vec::new(),
        backward: Vec::new(),
    };
    let mut blocks = vec![block(input, vec![StepId(0)])];
    blocks.extend((0..count).map(|n| block(nodes[n].size, vec![forward(n)])));
    for (n, node) in nodes.iter().enumerate() {
        let read: Vec<usize> = match node.inputs[..] {
            [] => vec![0],
            ref inputs => inputs.iter().map(|input| input + 1).collect(),
        };
        for read in read {
            blocks[read].readers.push(forward(n));
            if node.kind != LayerKind::Join {
                blocks[read].backward.insert(0, backward(n));
            }
        }
    }
    let gradient = |n: usize| BlockId::new(1 + count + n);
    blocks.extend((0..count).map(|n| block(nodes[n].size, Vec::new())));
    let layers: Vec<Layer> = nodes
        .iter()
        .enumerate()
        .map(|(n, node)| Layer {
            name: format!("{}{n}", node.kind),
            kind: node.kind,
            inputs: node.inputs.iter().copied().map(LayerId::new).collect(),
        })
        .collect();
    let step = |work, duration| GraphStep { work, duration: Nanos(duration), actions: Vec::new() };
    let mut steps = vec![step(Work::Other, 0)];
    for (n, node) in nodes.iter().enumerate() {
        steps.push(step(Work::Forward(LayerId::new(n)), node.forward));
    }
    for (n, node) in nodes.iter().enumerate().rev() {
        steps.push(step(Work::Backward(LayerId::new(n)), node.backward));
    }
    steps[0].actions.push(Action::Alloc(BlockId(0)));
    for n in 0..count {
        steps[forward(n).index()].actions.push(Action::Alloc(BlockId::new(1 + n)));
    }
    // The gradient of an output comes into being with the backward pass of its last reader, or with its own.
    for n in 0..count {
        let mut readers = (n + 1..count).filter(|&later| nodes[later].inputs.contains(&n));
        let from = readers.next_back().map_or(backward(n), backward);
        steps[from.index()].actions.push(Action::Alloc(gradient(n)));
    }
    for n in 0..count {
        steps[backward(n).index()].actions.push(Action::Free(gradient(n)));
    }
    for (id, block) in blocks.iter().enumerate().take(count + 1) {
        let uses = block.writers.iter().chain(&block.readers).chain(&block.backward);
        let last = *uses.max().expect("it is written");
        steps[last.index()].actions.push(Action::Free(BlockId::new(id)));
    }
    Graph::new(layers, steps, blocks).expect("a graph")
}
