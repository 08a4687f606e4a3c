//! Normalizations.

use super::super::fact::Fact;
use super::super::model::{Name, Node};
use super::layers::weight_of;
use super::{Lowering, numbers};
use crate::dtype::DType;
use crate::error::GraphError;
use crate::graph::{Argument, InputRole, ValueId};

/// Runs a normalization.
pub(super) fn lower(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    match node.operator.as_str() {
        "BatchNormalization" => batch_norm(l, node),
        "LayerNormalization" => layer_norm(l, node),
        "RMSNormalization" => rms_norm(l, node),
        "GroupNormalization" => group_norm(l, node),
        "InstanceNormalization" => instance_norm(l, node),
        _ => Ok(false),
    }
}

/// `nn.BatchNorm2d` and the like, which count their batches (torch/nn/modules/batchnorm.py): in training as training
/// runs it, whatever the exporter set.
fn batch_norm(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    if x.rank() < 2 {
        return Err(GraphError::Format(format!("an input of sizes {:?}", x.dims)));
    }
    let channels = [x.dims[1]];
    let weight = weight_of(l, node, 1, &channels)?;
    let bias = weight_of(l, node, 2, &channels)?;
    let mean = buffer(l, node.input(3))?;
    let variance = buffer(l, node.input(4))?;
    if l.trains {
        count(l, node);
    }
    let input = l.value(node.input(0))?;
    let arguments = [
        ("input", Argument::Value(input)),
        ("weight", Argument::Value(weight)),
        ("bias", Argument::Value(bias)),
        ("running_mean", Argument::Value(mean)),
        ("running_var", Argument::Value(variance)),
        ("training", Argument::Bool(l.trains)),
        ("momentum", Argument::Float(0.1)),
        ("eps", Argument::Float(node.float("epsilon", 1e-5))),
    ];
    l.result(node, "aten.batch_norm.default", &arguments, x)
}

fn buffer(l: &mut Lowering<'_>, name: Option<Name>) -> Result<ValueId, GraphError> {
    match name.filter(|name| l.model.initializers.contains_key(name)) {
        Some(name) => l.buffer(name),
        None => l.value(name),
    }
}

/// `num_batches_tracked`, which ONNX has not.
fn count(l: &mut Lowering<'_>, node: &Node) {
    let fact = Fact { dtype: DType::I64, dims: Vec::new(), known: None };
    let Some(mean) = node.input(3) else { return };
    let path = l.model.name(mean).to_owned();
    let path = match path.rsplit_once('.') {
        Some((module, _)) => format!("{module}.num_batches_tracked"),
        None => format!("{path}.num_batches_tracked"),
    };
    let id = l.add_value(&path, &fact, false);
    l.inputs.push(crate::graph::Input { value: id, role: InputRole::Buffer(path), same_as: None });
    let arguments = [("self", Argument::Value(id)), ("other", Argument::Int(1))];
    l.step(node, "aten.add_.Tensor", &arguments, &fact);
}

/// The weight and the bias of a layer over these sizes.
fn affine(
    l: &mut Lowering<'_>,
    node: &Node,
    dims: &[i64],
) -> Result<(Argument, Argument), GraphError> {
    let mut part = |at: usize| match node.input(at) {
        Some(_) => Ok(Argument::Value(weight_of(l, node, at, dims)?)),
        None => Ok::<_, GraphError>(Argument::None),
    };
    Ok((part(1)?, part(2)?))
}

/// `F.layer_norm`.
fn layer_norm(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    if node.outputs.iter().flatten().count() > 1 {
        return Ok(false);
    }
    let x = l.fact(node.input(0))?.clone();
    let axis = x.axis(node.int("axis", -1))?;
    let shape = x.dims[axis..].to_vec();
    let (weight, bias) = affine(l, node, &shape)?;
    let input = l.value(node.input(0))?;
    let arguments = [
        ("input", Argument::Value(input)),
        ("normalized_shape", numbers(&shape)),
        ("weight", weight),
        ("bias", bias),
        ("eps", Argument::Float(node.float("epsilon", 1e-5))),
    ];
    l.result(node, "aten.layer_norm.default", &arguments, x)
}

/// `F.rms_norm`.
fn rms_norm(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let axis = x.axis(node.int("axis", -1))?;
    let shape = x.dims[axis..].to_vec();
    let (weight, _) = affine(l, node, &shape)?;
    let input = l.value(node.input(0))?;
    let arguments = [
        ("input", Argument::Value(input)),
        ("normalized_shape", numbers(&shape)),
        ("weight", weight),
        ("eps", Argument::Float(node.float("epsilon", 1e-5))),
    ];
    l.result(node, "aten.rms_norm.default", &arguments, x)
}

/// `F.group_norm`.
fn group_norm(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let groups = node.int("num_groups", 1);
    if x.rank() < 2 || groups <= 0 || x.dims[1] % groups != 0 {
        return Err(GraphError::Format(format!("{groups} groups of an input of {:?}", x.dims)));
    }
    let (weight, bias) = affine(l, node, &[x.dims[1]])?;
    let input = l.value(node.input(0))?;
    let arguments = [
        ("input", Argument::Value(input)),
        ("num_groups", Argument::Int(groups)),
        ("weight", weight),
        ("bias", bias),
        ("eps", Argument::Float(node.float("epsilon", 1e-5))),
    ];
    l.result(node, "aten.group_norm.default", &arguments, x)
}

/// `F.instance_norm`: a batch normalization of batch times channels, with the weights repeated
/// (aten/src/ATen/native/Normalization.cpp, `instance_norm`).
fn instance_norm(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let [batch, channels, rest @ ..] = x.dims.as_slice() else {
        return Err(GraphError::Format(format!("an input of sizes {:?}", x.dims)));
    };
    let (weight, bias) = affine(l, node, &[*channels])?;
    let all = Fact::of(x.dtype, vec![batch.saturating_mul(*channels)])?;
    let mut repeat = |value: Argument| {
        let arguments = [("self", value), ("repeats", numbers(&[*batch]))];
        Argument::Value(l.step(node, "aten.repeat.default", &arguments, &all))
    };
    let (weight, bias) = (repeat(weight), repeat(bias));
    let whole = Fact::of(x.dtype, [&[1, all.dims[0]], rest].concat())?;
    let input = Argument::Value(l.value(node.input(0))?);
    let arguments = [("self", input), ("shape", numbers(&whole.dims))];
    let flat = l.step(node, "aten.reshape.default", &arguments, &whole);
    let arguments = [
        ("input", Argument::Value(flat)),
        ("weight", weight),
        ("bias", bias),
        ("training", Argument::Bool(true)),
        ("eps", Argument::Float(node.float("epsilon", 1e-5))),
    ];
    let normalized = l.step(node, "aten.batch_norm.default", &arguments, &whole);
    let dims = numbers(&x.dims);
    let arguments = [("self", Argument::Value(normalized)), ("size", dims)];
    l.result(node, "aten.view.default", &arguments, x)
}
