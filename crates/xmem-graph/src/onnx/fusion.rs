//! Operators of PyTorch that exporters write as several nodes, put together again where the nodes can be nothing else.
//!
//! A replacement is written in operators of ONNX where it has one (`LayerNormalization`, `Gelu`, `Attention`, …), else
//! in operators of the domain `xmem`. Nodes that nothing uses any more are left out later.

mod activations;
mod attention;
mod folded;
mod in_place;
mod normalization;
mod products;
mod view;

use super::model::{Model, Node};
use view::View;

/// A pattern that ends in a node, and the node that stands for it.
type Pattern = fn(&View<'_>, &Node) -> Option<Node>;

const PATTERNS: &[Pattern] = &[
    attention::scaled_dot_product,
    normalization::layer_norm,
    normalization::group_norm,
    activations::gelu,
    activations::gated,
    activations::rsqrt,
    products::linear,
];

/// Puts operators together, and takes apart what the exporter folded; returns what that assumes.
pub(super) fn fuse(model: &mut Model) -> Vec<String> {
    let view = View::of(model);
    let fused: Vec<Option<Node>> = model
        .nodes
        .iter()
        .map(|node| PATTERNS.iter().find_map(|pattern| pattern(&view, node)))
        .collect();
    for (node, fused) in model.nodes.iter_mut().zip(fused) {
        if let Some(fused) = fused {
            *node = fused;
        }
    }
    let mut assumed = folded::unfold(model);
    let in_place = in_place::mark(model);
    if in_place > 0 {
        assumed.push(format!(
            "{in_place} activations and sums of this convolutional network are taken as in place, as they are in torchvision"
        ));
    }
    assumed
}

/// A node in place of another.
fn replaced(node: &Node, operator: &str, inputs: Vec<Option<usize>>) -> Node {
    Node {
        operator: operator.to_owned(),
        name: node.name.clone(),
        inputs,
        outputs: node.outputs.clone(),
        modules: node.modules.clone(),
        origin: node.origin.clone(),
        ..Node::default()
    }
}
