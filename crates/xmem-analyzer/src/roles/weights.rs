//! Facts about the model that the operators of the first forward show: weights that are not trained,
//! and running statistics.

use super::facts::Facts;
use crate::spans::{Phase, rows_in};
use rustc_hash::FxHashMap;
use xmem_types::{Bytes, OpId};

/// Weights that forward operators take and that get no gradient, by size.
///
/// Only operators whose arguments distinguish weights from activations are read: linear layers,
/// embeddings and convolutions. A weight that is used twice counts twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrozenWeights {
    counts: FxHashMap<Bytes, u32>,
}

impl FrozenWeights {
    pub(crate) fn of_first_forward(facts: &Facts<'_>) -> Self {
        let program = facts.program;
        let linked: FxHashMap<OpId, OpId> =
            program.autograd.pairs().map(|(node, forward)| (forward, node)).collect();
        let mut counts: FxHashMap<Bytes, u32> = FxHashMap::default();
        for &op in first_forward(facts) {
            let node_of = |name: &str| {
                let inside = program.tree.descendants(op).iter();
                inside
                    .chain([&op])
                    .filter(|&&o| program.op_name(o) == name)
                    .find_map(|o| linked.get(o))
                    .copied()
            };
            let (trained, weights): (bool, &[usize]) = match program.op_name(op) {
                // The weight's transpose has a node of its own where the weight wants a gradient;
                // where the whole layer has one, this is unknown.
                "aten::linear" => {
                    let node = node_of("aten::t").or_else(|| node_of("aten::linear"));
                    (node.is_some(), &[1, 2])
                }
                "aten::embedding" => (node_of("aten::embedding").is_some(), &[0]),
                "aten::conv1d" | "aten::conv2d" | "aten::conv3d" => {
                    let node = node_of("aten::convolution");
                    (node.is_some_and(|n| conv_wants_weight(facts, n)), &[1, 2])
                }
                _ => continue,
            };
            if trained {
                continue;
            }
            for size in weights.iter().filter_map(|&i| facts.program.tensor_bytes(op, i)) {
                *counts.entry(size).or_default() += 1;
            }
        }
        Self { counts }
    }

    /// Takes one weight of this size out; false if none is left.
    pub(super) fn take(&mut self, size: Bytes) -> bool {
        match self.counts.get_mut(&size) {
            Some(n @ 1..) => {
                *n -= 1;
                true
            }
            _ => false,
        }
    }

    /// Sizes and counts that were not taken out.
    pub(crate) fn left(&self) -> Vec<(Bytes, u32)> {
        self.counts.iter().map(|(&size, &n)| (size, n)).collect()
    }
}

/// Sizes of the running statistics that normalizations of the first forward take, with their count
/// (aten/src/ATen/native/Normalization.cpp, `batch_norm`: arguments 3 and 4).
pub(crate) fn statistics_of_first_forward(facts: &Facts<'_>) -> FxHashMap<Bytes, u32> {
    let mut counts: FxHashMap<Bytes, u32> = FxHashMap::default();
    for &op in first_forward(facts) {
        if matches!(facts.program.op_name(op), "aten::batch_norm" | "aten::instance_norm") {
            for size in [3, 4].into_iter().filter_map(|i| facts.program.tensor_bytes(op, i)) {
                *counts.entry(size).or_default() += 1;
            }
        }
    }
    counts
}

/// The outermost operators of the first forward phase.
pub(super) fn first_forward<'a>(facts: &Facts<'a>) -> &'a [OpId] {
    let program = facts.program;
    let outer = &facts.timeline.outer;
    match facts.phases.iter().find(|p| p.phase == Phase::Forward) {
        Some(span) => rows_in(outer, span.start..span.end, |&op| program.op_start(op)),
        None => &[],
    }
}

/// Returns whether a convolution's backward computes the weight's gradient: the second of its output
/// mask (aten/src/ATen/native/Convolution.cpp, `convolution_backward`, last argument).
fn conv_wants_weight(facts: &Facts<'_>, node: OpId) -> bool {
    let program = facts.program;
    let inside = program.tree.descendants(node).iter();
    let mask =
        inside.filter(|&&o| program.op_name(o) == "aten::convolution_backward").find_map(|&o| {
            let arguments = program.arguments(o);
            arguments.value(arguments.list.len().checked_sub(1)?)
        });
    mask.is_none_or(|m| m.split(',').nth(1).is_none_or(|w| w.contains("True")))
}
