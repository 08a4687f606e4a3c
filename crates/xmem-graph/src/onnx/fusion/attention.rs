//! `F.scaled_dot_product_attention`. Both exporters scale the query and the key, each by the root of the scale, which no
//! model does that computes attention itself (torch/onnx/_internal/torchscript_exporter/symbolic_opset14.py and
//! torch/onnx/_internal/exporter/_torchlib/ops/nn.py, `scaled_dot_product_attention`).

use super::super::fact::Fact;
use super::super::model::{Attribute, Name, Node};
use super::replaced;
use super::view::View;

/// Softmax of the product of scaled query and key, times the value.
pub(super) fn scaled_dot_product(view: &View<'_>, node: &Node) -> Option<Node> {
    if node.operator != "MatMul" {
        return None;
    }
    let mut weights = node.input(0);
    let mut dropout = None;
    if let Some(dropped) = view.only_for(weights, "Dropout") {
        dropout = Some(view.fact(dropped.input(1)).and_then(Fact::scalar).unwrap_or(0.5));
        weights = dropped.input(0);
    }
    // Rows without any key are zeros.
    if let Some(choice) = view.only_for(weights, "Where")
        && let Some(test) = view.only_for(choice.input(0), "IsNaN")
        && test.input(0) == choice.input(2)
    {
        weights = choice.input(2);
    } else if !view.is_used_once(weights) {
        return None;
    }
    let softmax = view.made_by(weights, "Softmax").filter(|s| s.int("axis", -1) == -1)?;
    let scores = softmax.input(0);
    let is_product = |name| view.only_for(name, "MatMul").is_some();
    let (product, mask) = match view.only_for(scores, "Add") {
        Some(sum) => view.beside(sum, is_product)?,
        None => (scores, None),
    };
    let product = view.only_for(product, "MatMul")?;
    let query = scaled(view, product.input(0))?;
    let turned = scaled(view, product.input(1))?;
    let key = untransposed(view, turned);
    let inputs = vec![Some(query), Some(key.unwrap_or(turned)), node.input(1)];
    let mut attention = replaced(node, "xmem::Attention", inputs);
    // The exporter writes several transpositions as one.
    if key.is_none() {
        attention.attributes.insert("is_transposed".to_owned(), Attribute::Int(1));
    }
    if let Some(dropout) = dropout {
        attention.attributes.insert("dropout_p".to_owned(), Attribute::Float(dropout));
    }
    if view.follows_from_sizes(mask, "Trilu") == Some(true) {
        attention.attributes.insert("is_causal".to_owned(), Attribute::Int(1));
    } else {
        attention.inputs.push(mask.map(|mask| as_given(view, mask)));
    }
    Some(attention)
}

/// What a value is times a number.
fn scaled(view: &View<'_>, name: Option<Name>) -> Option<Name> {
    let product = view.only_for(name, "Mul")?;
    let is_scale = |name: Option<Name>| {
        let name = view.made_by(name, "Cast").map_or(name, |cast| cast.input(0));
        view.made_by(name, "Sqrt").is_some() || view.fact(name).is_some_and(|f| f.elements() == 1)
    };
    view.beside(product, is_scale)?.1
}

/// The key that was transposed, as four dimensions or as three.
fn untransposed(view: &View<'_>, name: Name) -> Option<Name> {
    let transposed = |name: Option<Name>| {
        let node = view.made_by(name, "Transpose")?;
        let order = node.ints("perm")?;
        let [before @ .., last_but_one, last] = order.as_slice() else { return None };
        let is_kept = before.iter().enumerate().all(|(at, axis)| at as i64 == *axis);
        (is_kept && last_but_one > last).then(|| node.input(0))?
    };
    if let Some(key) = transposed(Some(name)) {
        return Some(key);
    }
    let split = view.only_for(Some(name), "Reshape")?;
    view.made_by(transposed(split.input(0)), "Reshape")?.input(0)
}

/// The mask before it became numbers.
fn as_given(view: &View<'_>, mask: Name) -> Name {
    let choice = view.made_by(Some(mask), "Where").filter(|choice| {
        view.is_number(choice.input(1), 0.0)
            && view.fact(choice.input(2)).and_then(Fact::scalar) == Some(f64::NEG_INFINITY)
    });
    choice.and_then(|choice| choice.input(0)).unwrap_or(mask)
}
