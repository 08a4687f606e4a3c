//! Activations that are products of a value with a function of it.

use super::super::model::{Attribute, Name, Node};
use super::replaced;
use super::view::View;
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

/// `F.gelu`: `x * 0.5 * (1 + erf(x / sqrt(2)))`, or with `tanh` as exporters write it, with `x * x * x`. Where the cube
/// is a power, the model computes it itself (`NewGELUActivation` of transformers).
pub(super) fn gelu(view: &View<'_>, node: &Node) -> Option<Node> {
    if node.operator != "Mul" {
        return None;
    }
    let factors = view.factors(node);
    let [a, b, c] = factors.as_slice() else { return None };
    for (x, half, sum) in [(a, b, c), (a, c, b), (b, a, c), (b, c, a), (c, a, b), (c, b, a)]
        .map(|(x, h, s)| (*x, *h, *s))
    {
        if !view.is_number(half, 0.5) {
            continue;
        }
        let Some(sum) = view.only_for(sum, "Add") else { continue };
        let Some((_, function)) = view.beside(sum, |name| view.is_number(name, 1.0)) else {
            continue;
        };
        if view.only_for(function, "Erf").is_some_and(|erf| is_of_root(view, erf.input(0), x)) {
            return Some(replaced(node, "Gelu", vec![x]));
        }
        if view.only_for(function, "Tanh").is_some_and(|tanh| is_cubic(view, tanh.input(0), x)) {
            let mut gelu = replaced(node, "Gelu", vec![x]);
            gelu.attributes.insert("approximate".to_owned(), Attribute::Text("tanh".to_owned()));
            return Some(gelu);
        }
    }
    None
}

/// `x / sqrt(2)`.
fn is_of_root(view: &View<'_>, name: Option<Name>, x: Option<Name>) -> bool {
    if let Some(quotient) = view.only_for(name, "Div") {
        return quotient.input(0) == x && view.is_number(quotient.input(1), SQRT_2);
    }
    let product = view.only_for(name, "Mul");
    let product = product.and_then(|p| view.beside(p, |name| view.is_number(name, FRAC_1_SQRT_2)));
    product.is_some_and(|(_, operand)| operand == x)
}

/// `sqrt(2 / pi) * (x + 0.044715 * x * x * x)`.
fn is_cubic(view: &View<'_>, name: Option<Name>, x: Option<Name>) -> bool {
    let of = || {
        let product = view.only_for(name, "Mul")?;
        let (_, sum) = view.beside(product, |name| view.is_number(name, 0.797_884_56))?;
        let (_, cube) = view.beside(view.only_for(sum, "Add")?, |name| name == x)?;
        let cube = view.only_for(cube, "Mul")?;
        let (_, cube) = view.beside(cube, |name| view.is_number(name, 0.044_715))?;
        let factors = view.factors(view.only_for(cube, "Mul")?);
        Some(factors.len() == 3 && factors.iter().all(|factor| *factor == x))
    };
    of().unwrap_or(false)
}

/// `F.hardswish`, `F.mish`, and `F.silu` where it is one module's, or the file says so. Code that multiplies by a
/// sigmoid itself keeps two results.
pub(super) fn gated(view: &View<'_>, node: &Node) -> Option<Node> {
    if node.operator != "Mul" {
        return None;
    }
    for (x, gate) in [(node.input(0), node.input(1)), (node.input(1), node.input(0))] {
        if view.only_for(gate, "HardSigmoid").is_some_and(|gate| gate.input(0) == x) {
            return Some(replaced(node, "HardSwish", vec![x]));
        }
        if let Some(tanh) = view.only_for(gate, "Tanh")
            && view.only_for(tanh.input(0), "Softplus").is_some_and(|s| s.input(0) == x)
        {
            return Some(replaced(node, "Mish", vec![x]));
        }
        if let Some(sigmoid) = view.only_for(gate, "Sigmoid")
            && sigmoid.input(0) == x
            && is_silu(view, node, sigmoid)
        {
            return Some(replaced(node, "Swish", vec![x]));
        }
    }
    None
}

fn is_silu(view: &View<'_>, node: &Node, sigmoid: &Node) -> bool {
    if let Some(origin) = &node.origin {
        return origin.starts_with("aten.silu");
    }
    // A module of its own that does nothing else.
    node.modules.len() > 2 && node.modules == sigmoid.modules && view.beside_in_module(node) == 2
}

/// `torch.rsqrt`.
pub(super) fn rsqrt(view: &View<'_>, node: &Node) -> Option<Node> {
    let root = match node.operator.as_str() {
        "Reciprocal" => node.input(0),
        "Div" if view.is_number(node.input(0), 1.0) => node.input(1),
        _ => return None,
    };
    let root = view.only_for(root, "Sqrt")?;
    Some(replaced(node, "xmem::Rsqrt", vec![root.input(0)]))
}
