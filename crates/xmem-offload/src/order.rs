//! Dymem's order of layers (algorithm 1): depth first, so that a branch is finished before the next one begins.

use crate::graph::{Action, Graph, GraphError, GraphStep, Layer, LayerId, StepId, Work};
use std::collections::BTreeMap;

/// The same training step with its layers in depth-first order, and the backward pass the other way round. The order of a
/// recording is fixed; this one is hypothetical: allocations move with their steps, and a block is freed after its
/// last use.
///
/// A layer waits until all layers that it reads from are there; the paper's line 6 compares with the counter of the
/// layer before, and its text says that all incoming branches have to have arrived.
///
/// # Errors
/// If the order is not possible: a use that the graph does not know would come before its block.
pub fn depth_first(graph: &Graph) -> Result<Graph, GraphError> {
    in_order(graph, &layers(graph.layers(), |_| 0))
}

/// The same training step in depth-first order, in which the branches of a fork come by reference count: the branch first
/// whose first output has most readers. In a block with joins, what has more references is allocated first then, so that
/// frees come in the reverse order (Dymem, section 3.3).
///
/// # Errors
/// As [`depth_first`].
pub fn by_reference_count(graph: &Graph) -> Result<Graph, GraphError> {
    let mut readers = vec![0; graph.layers().len()];
    for input in graph.layers().iter().flat_map(|layer| &layer.inputs) {
        readers[input.index()] += 1;
    }
    in_order(graph, &layers(graph.layers(), |layer| readers[layer.index()]))
}

fn in_order(graph: &Graph, order: &[LayerId]) -> Result<Graph, GraphError> {
    let mut rank = vec![0; order.len()];
    for (at, layer) in order.iter().enumerate() {
        rank[layer.index()] = at;
    }
    let steps = graph.steps();
    // Steps that belong to no layer stay behind the step that they follow.
    let mut keys: Vec<(Part, usize, usize)> = Vec::with_capacity(steps.len());
    for (row, step) in steps.iter().enumerate() {
        let key = match step.work {
            Work::Forward(layer) => (Part::Forward, rank[layer.index()], row),
            Work::Backward(layer) => (Part::Backward, order.len() - rank[layer.index()], row),
            Work::Optimizer | Work::Other => match keys.last() {
                Some(&(part, rank, _)) => (part, rank, row),
                None => (Part::Before, 0, row),
            },
        };
        keys.push(key);
    }
    let mut sorted: Vec<usize> = (0..steps.len()).collect();
    sorted.sort_by_key(|&row| keys[row]);
    let mut place = vec![StepId(0); steps.len()];
    for (at, &row) in sorted.iter().enumerate() {
        place[row] = StepId::new(at);
    }
    rebuild(graph, &sorted, &place)
}

/// The parts of a training step, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Before,
    Forward,
    Backward,
}

/// Depth first; of the layers that follow one, those with most of `references` first, and as recorded where they are equal.
fn layers(layers: &[Layer], references: impl Fn(LayerId) -> usize) -> Vec<LayerId> {
    let mut successors = vec![Vec::new(); layers.len()];
    for (row, layer) in layers.iter().enumerate() {
        for input in &layer.inputs {
            successors[input.index()].push(LayerId::new(row));
        }
    }
    for successors in &mut successors {
        successors.sort_by_key(|&layer| std::cmp::Reverse(references(layer)));
    }
    let mut arrived = vec![0; layers.len()];
    let mut order = Vec::with_capacity(layers.len());
    // Layers without inputs begin; the first one of the recording is visited first.
    let first = (0..layers.len()).rev().filter(|&row| layers[row].inputs.is_empty());
    let mut stack: Vec<LayerId> = first.map(LayerId::new).collect();
    while let Some(layer) = stack.pop() {
        arrived[layer.index()] += 1;
        if arrived[layer.index()] < layers[layer.index()].inputs.len() {
            continue;
        }
        order.push(layer);
        stack.extend(successors[layer.index()].iter().rev().copied());
    }
    order
}

fn rebuild(graph: &Graph, sorted: &[usize], place: &[StepId]) -> Result<Graph, GraphError> {
    let (layers, steps, mut blocks) = graph.clone().into_parts();
    let mut freed_by: BTreeMap<usize, Vec<Action>> = BTreeMap::new();
    for id in graph.ids() {
        let lifetime = graph.lifetime(id);
        let block = &mut blocks[id.index()];
        for uses in [&mut block.writers, &mut block.readers, &mut block.backward] {
            uses.iter_mut().for_each(|step| *step = place[step.index()]);
            uses.sort_unstable();
        }
        if let Some(free) = lifetime.free {
            let uses = block.writers.iter().chain(&block.readers).chain(&block.backward);
            let last = uses.copied().max().unwrap_or(StepId(0));
            let last = last.max(place[free.index()]).max(place[lifetime.alloc.index()]);
            if last != place[free.index()] {
                freed_by.entry(last.index()).or_default().push(Action::Free(id));
            }
        }
    }
    let later: Vec<Action> = freed_by.values().flatten().copied().collect();
    let moved: Vec<GraphStep> = sorted
        .iter()
        .enumerate()
        .map(|(at, &row)| {
            let mut step = steps[row].clone();
            step.actions.retain(|action| !later.contains(action));
            step.actions.extend(freed_by.get(&at).into_iter().flatten());
            step
        })
        .collect();
    Graph::new(layers, moved, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::LayerKind;

    #[test]
    fn a_branch_is_finished_before_the_next_and_a_join_waits_for_all() {
        let layer = |inputs: &[u32]| Layer {
            name: String::new(),
            kind: LayerKind::Other,
            inputs: inputs.iter().copied().map(LayerId).collect(),
        };
        // 0 forks to 1 and 2; breadth first, the branches go on with 3 and 4, and 5 joins them.
        let graph =
            [layer(&[]), layer(&[0]), layer(&[0]), layer(&[1]), layer(&[2]), layer(&[3, 4])];
        let order = |references: fn(LayerId) -> usize| -> Vec<u32> {
            layers(&graph, references).into_iter().map(|layer| layer.0).collect()
        };
        assert_eq!(order(|_| 0), [0, 1, 3, 2, 4, 5]);
        // The output of 2 has more readers than that of 1.
        assert_eq!(order(|layer| usize::from(layer.0 == 2)), [0, 2, 4, 1, 3, 5]);
    }
}
