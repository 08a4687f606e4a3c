//! Convolutions, dropout, attention, softmax and recurrent layers.

use super::super::fact::Fact;
use super::super::model::Node;
use super::{Lowering, numbers};
use crate::aten::Geometry;
use crate::error::GraphError;
use crate::graph::Argument;

/// Runs a layer.
pub(super) fn lower(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    match node.operator.as_str() {
        "Conv" => convolution(l, node, false),
        "ConvTranspose" => convolution(l, node, true),
        "Dropout" => dropout(l, node),
        "Softmax" | "LogSoftmax" => softmax(l, node),
        "Attention" | "xmem::Attention" => attention(l, node),
        "LSTM" | "GRU" | "RNN" => recurrent(l, node),
        _ => Ok(false),
    }
}

/// `F.conv2d` and the like.
fn convolution(l: &mut Lowering<'_>, node: &Node, transposed: bool) -> Result<bool, GraphError> {
    let mut x = l.fact(node.input(0))?.clone();
    let weight = l.fact(node.input(1))?.clone();
    let rank = weight.rank().saturating_sub(2);
    if !(1..=3).contains(&rank) || x.rank() != rank + 2 {
        return Err(GraphError::Format(format!(
            "sizes {:?} with weights {:?}",
            x.dims, weight.dims
        )));
    }
    let list = |name: &str, default: i64| {
        node.ints(name).filter(|list| list.len() >= rank).unwrap_or_else(|| vec![default; rank])
    };
    let (stride, dilation) = (list("strides", 1), list("dilations", 1));
    if stride.iter().any(|s| *s <= 0) {
        return Err(GraphError::Format(format!("the strides are {stride:?}")));
    }
    let kernel = weight.dims[2..].to_vec();
    let mut pads = padding(node, &x.dims[2..], &kernel, &stride, &dilation);
    let mut input = l.value(node.input(0))?;
    // PyTorch pads by itself where the ends differ (torch/nn/modules/conv.py, `_conv_forward`).
    let is_even = (0..rank).all(|at| pads[at] == pads[at + rank]);
    if !is_even && !transposed {
        let mut dims = x.dims.clone();
        let mut padding = Vec::new();
        for at in (0..rank).rev() {
            padding.extend([pads[at], pads[at + rank]]);
            dims[at + 2] = dims[at + 2].saturating_add(pads[at]).saturating_add(pads[at + rank]);
        }
        x = Fact::of(x.dtype, dims)?;
        let arguments = [("self", Argument::Value(input)), ("pad", numbers(&padding))];
        input = l.step(node, "aten.constant_pad_nd.default", &arguments, &x);
        pads = vec![0; 2 * rank];
    }
    let geometry = Geometry {
        stride,
        padding: pads[..rank].to_vec(),
        dilation,
        output_padding: list("output_padding", 0),
        transposed,
        groups: node.int("group", 1).max(1),
    };
    let result = Fact::of(x.dtype, geometry.result(&x.dims, &weight.dims))?;
    let weight_value = weight_of(l, node, 1, &weight.dims)?;
    let bias = match node.input(2) {
        Some(_) => Argument::Value(weight_of(l, node, 2, &l.fact(node.input(2))?.dims.clone())?),
        None => Argument::None,
    };
    let arguments = [
        ("input", Argument::Value(input)),
        ("weight", Argument::Value(weight_value)),
        ("bias", bias),
        ("stride", numbers(&geometry.stride)),
        ("padding", numbers(&geometry.padding)),
        ("dilation", numbers(&geometry.dilation)),
        ("output_padding", numbers(&geometry.output_padding)),
        ("groups", Argument::Int(geometry.groups)),
    ];
    let kind = if transposed { "conv_transpose" } else { "conv" };
    l.result(node, &format!("aten.{kind}{rank}d.default"), &arguments, result)
}

/// A weight of a layer; it is a parameter even if the file has it as a constant.
pub(super) fn weight_of(
    l: &mut Lowering<'_>,
    node: &Node,
    at: usize,
    dims: &[i64],
) -> Result<crate::graph::ValueId, GraphError> {
    let name = node.input(at);
    match name.filter(|name| l.model.initializers.contains_key(name)) {
        Some(name) => {
            // Weights that the exporter computed have no name of the model's.
            let is_computed = is_computed(l.model.name(name));
            let module =
                node.modules.last().filter(|module| is_computed && !module.path.is_empty());
            let part = if at == 1 { "weight" } else { "bias" };
            let path = module.map(|module| format!("{}.{part}", module.path));
            Ok(l.parameter(name, path, dims))
        }
        None => l.value(name),
    }
}

/// Returns whether a name is that of a value that the exporter computed of weights: `onnx::MatMul_12`, `val_12`.
fn is_computed(name: &str) -> bool {
    let number = name.strip_prefix("val_").unwrap_or_default();
    name.starts_with("onnx::")
        || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Padding at the begin of each dimension, then at its end (ONNX `Conv`, `auto_pad`).
pub(super) fn padding(
    node: &Node,
    sizes: &[i64],
    kernel: &[i64],
    stride: &[i64],
    dilation: &[i64],
) -> Vec<i64> {
    let rank = kernel.len();
    let is_upper = match node.text("auto_pad") {
        Some("SAME_UPPER") => true,
        Some("SAME_LOWER") => false,
        Some("VALID") => return vec![0; 2 * rank],
        _ => {
            let pads = node.ints("pads").filter(|pads| pads.len() == 2 * rank);
            return pads.unwrap_or_else(|| vec![0; 2 * rank]);
        }
    };
    let mut pads = vec![0; 2 * rank];
    for at in 0..rank {
        let number = |list: &[i64]| list.get(at).copied().unwrap_or(1).max(1);
        let (size, stride) = (number(sizes), number(stride));
        let steps = (size - 1) / stride + 1;
        let span = (steps - 1)
            .saturating_mul(stride)
            .saturating_add(number(dilation).saturating_mul(number(kernel) - 1))
            .saturating_add(1);
        let whole = span.saturating_sub(size).max(0);
        let (less, more) = (whole / 2, whole - whole / 2);
        (pads[at], pads[at + rank]) = if is_upper { (less, more) } else { (more, less) };
    }
    pads
}

/// `F.dropout`, on in training, whatever the exporter set.
fn dropout(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    if !l.trains {
        return l.same(node);
    }
    let ratio = match node.input(1) {
        Some(name) => l.fact(Some(name))?.scalar().unwrap_or(0.5),
        None => node.float("ratio", 0.5),
    };
    let x = l.fact(node.input(0))?.clone();
    let input = l.value(node.input(0))?;
    let arguments = [
        ("input", Argument::Value(input)),
        ("p", Argument::Float(ratio)),
        ("train", Argument::Bool(true)),
    ];
    l.result(node, "aten.dropout.default", &arguments, x)
}

/// A recurrent layer, which has no definition: the sizes of its results (ONNX `LSTM`).
fn recurrent(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let (x, weight) = (l.fact(node.input(0))?.clone(), l.fact(node.input(2))?.clone());
    let ([length, batch, _], [directions, _, hidden]) = (x.dims.as_slice(), weight.dims.as_slice())
    else {
        return Err(GraphError::Format(format!(
            "sizes {:?} with weights {:?}",
            x.dims, weight.dims
        )));
    };
    let state = vec![*directions, *batch, *hidden];
    let mut results = vec![Fact::of(x.dtype, vec![*length, *directions, *batch, *hidden])?];
    for _ in 1..node.outputs.len() {
        results.push(Fact::of(x.dtype, state.clone())?);
    }
    let input = l.value(node.input(0))?;
    let mut arguments = vec![("input", Argument::Value(input))];
    for (at, name) in [(1, "weight_ih"), (2, "weight_hh"), (3, "bias")] {
        if node.input(at).is_some() {
            let dims = l.fact(node.input(at))?.dims.clone();
            arguments.push((name, Argument::Value(weight_of(l, node, at, &dims)?)));
        }
    }
    l.results(node, &format!("onnx::{}", node.operator), &arguments, results)
}

/// `F.softmax`. Before operator set 13 all dimensions behind the axis are one.
fn softmax(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let axis = node.int("axis", if l.model.opset < 13 { 1 } else { -1 });
    x.axis(axis)?;
    let input = l.value(node.input(0))?;
    let name = if node.operator == "Softmax" { "aten.softmax.int" } else { "aten.log_softmax.int" };
    l.result(node, name, &[("self", Argument::Value(input)), ("dim", Argument::Int(axis))], x)
}

/// `F.scaled_dot_product_attention` (ONNX `Attention`, of which inputs with heads as a dimension are taken).
fn attention(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let (query, value) = (l.fact(node.input(0))?.clone(), l.fact(node.input(2))?.clone());
    let mut key = l.fact(node.input(1))?.clone();
    let has_past = (4..node.inputs.len()).any(|at| node.input(at).is_some());
    if !(3..=4).contains(&query.rank()) || query.rank() != key.rank() || key.rank() != value.rank()
    {
        return Ok(false);
    }
    // Heads within the last dimension, a cache, or scores as results.
    if has_past || node.int("q_num_heads", 0) != 0 || node.outputs.iter().flatten().count() > 1 {
        return Ok(false);
    }
    let mut dims = query.dims.clone();
    if let (Some(last), Some(size)) = (dims.last_mut(), value.dims.last()) {
        *last = *size;
    }
    let result = Fact::of(query.dtype, dims)?;
    let mut key_value = l.value(node.input(1))?;
    if node.int("is_transposed", 0) == 1 {
        let rank = key.rank();
        key.dims.swap(rank - 2, rank - 1);
        let arguments = [
            ("self", Argument::Value(key_value)),
            ("dim0", Argument::Int(-2)),
            ("dim1", Argument::Int(-1)),
        ];
        key_value = l.step(node, "aten.transpose.int", &arguments, &key);
    }
    let arguments = [
        ("query", Argument::Value(l.value(node.input(0))?)),
        ("key", Argument::Value(key_value)),
        ("value", Argument::Value(l.value(node.input(2))?)),
        ("attn_mask", l.maybe(node.input(3))?),
        ("dropout_p", Argument::Float(if l.trains { node.float("dropout_p", 0.0) } else { 0.0 })),
        ("is_causal", Argument::Bool(node.int("is_causal", 0) == 1)),
        ("enable_gqa", Argument::Bool(query.rank() == 4 && query.dims[1] != key.dims[1])),
    ];
    l.result(node, "aten.scaled_dot_product_attention.default", &arguments, result)
}
