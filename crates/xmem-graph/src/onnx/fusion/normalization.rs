//! Normalizations that exporters for older operator sets write with means and powers.

use super::super::fact::Fact;
use super::super::model::{Attribute, Name, Node};
use super::replaced;
use super::view::View;

/// `F.layer_norm` with weight and bias, over the last dimensions
/// (torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py, `native_layer_norm`).
pub(super) fn layer_norm(view: &View<'_>, node: &Node) -> Option<Node> {
    if node.operator != "Add" {
        return None;
    }
    let (bias, scaled) = view.beside(node, |name| is_affine(view, name))?;
    let scaled = view.only_for(scaled, "Mul")?;
    let (weight, normalized) = view.beside(scaled, |name| is_affine(view, name))?;
    let quotient = view.only_for(normalized, "Div")?;
    let centered = view.made_by(quotient.input(0), "Sub")?;
    let x = centered.input(0);
    let axes = mean_of(view, centered.input(1), |name| name == x)?;
    let root = view.only_for(quotient.input(1), "Sqrt")?;
    let sum = view.only_for(root.input(0), "Add")?;
    let is_small = |name| view.fact(name).and_then(Fact::scalar).is_some_and(|v| v < 0.1);
    let (epsilon, variance) = view.beside(sum, is_small)?;
    let is_square = |name: Option<Name>| {
        view.only_for(name, "Pow").is_some_and(|power| {
            view.is_number(power.input(1), 2.0) && power.input(0) == quotient.input(0)
        })
    };
    let again = mean_of(view, variance, is_square)?;
    if again != axes || view.fact(weight).map(Fact::rank) != Some(axes.len()) {
        return None;
    }
    let mut layer = replaced(node, "LayerNormalization", vec![x, weight, bias]);
    layer.attributes.insert("axis".to_owned(), Attribute::Int(*axes.iter().min()?));
    let epsilon = view.fact(epsilon).and_then(Fact::scalar).unwrap_or(1e-5);
    layer.attributes.insert("epsilon".to_owned(), Attribute::Float(epsilon));
    Some(layer)
}

fn is_affine(view: &View<'_>, name: Option<Name>) -> bool {
    (1..=3).any(|rank| view.is_weight(name, rank))
        && view.fact(name).is_some_and(|f| f.elements() > 1)
}

/// The axes of a mean of a value, if they are the last ones.
fn mean_of(
    view: &View<'_>,
    name: Option<Name>,
    is: impl Fn(Option<Name>) -> bool,
) -> Option<Vec<i64>> {
    let mean = view.made_by(name, "ReduceMean").filter(|mean| is(mean.input(0)))?;
    let axes = view.axes(mean)?;
    let last = (1..=axes.len() as i64).all(|from_end| axes.contains(&-from_end));
    (last && !axes.is_empty()).then_some(axes)
}

/// `F.group_norm`: an instance normalization of groups, times weights with a dimension for each of the image
/// (torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py, `group_norm`).
pub(super) fn group_norm(view: &View<'_>, node: &Node) -> Option<Node> {
    if node.operator != "Add" {
        return None;
    }
    let is_channels = |name: Option<Name>| {
        view.fact(name).is_some_and(|f| {
            f.dtype.is_floating_point() && f.rank() >= 2 && f.dims[1..].iter().all(|d| *d == 1)
        })
    };
    let (bias, scaled) = view.beside(node, is_channels)?;
    let scaled = view.only_for(scaled, "Mul")?;
    let (weight, normalized) = view.beside(scaled, is_channels)?;
    let whole = view.only_for(normalized, "Reshape")?;
    let instance = view.only_for(whole.input(0), "InstanceNormalization")?;
    let grouped = view.only_for(instance.input(0), "Reshape")?;
    let groups = view.fact(grouped.input(1)).and_then(|f| f.known_ints())?;
    let [0, groups, -1] = groups else { return None };
    let mut group = replaced(node, "GroupNormalization", vec![grouped.input(0), weight, bias]);
    group.attributes.insert("num_groups".to_owned(), Attribute::Int(*groups));
    Some(group)
}
