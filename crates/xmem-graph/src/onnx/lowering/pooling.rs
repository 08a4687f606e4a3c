//! Pooling and resampling.

use super::super::fact::Fact;
use super::super::model::{Attribute, Node};
use super::layers::padding;
use super::{Lowering, numbers};
use crate::aten::Window;
use crate::error::GraphError;
use crate::graph::Argument;

/// Runs a pooling.
pub(super) fn lower(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    match node.operator.as_str() {
        "MaxPool" => pool(l, node, "max"),
        "AveragePool" => pool(l, node, "avg"),
        "GlobalAveragePool" => global(l, node, "adaptive_avg"),
        "GlobalMaxPool" => global(l, node, "max"),
        "Resize" | "Upsample" => resize(l, node),
        "DepthToSpace" => pixel_shuffle(l, node),
        _ => Ok(false),
    }
}

/// `F.max_pool2d`, `F.avg_pool2d`.
fn pool(l: &mut Lowering<'_>, node: &Node, kind: &str) -> Result<bool, GraphError> {
    let mut x = l.fact(node.input(0))?.clone();
    let kernel = node.ints("kernel_shape").unwrap_or_default();
    let rank = kernel.len();
    if !(1..=3).contains(&rank) || x.rank() != rank + 2 || kernel.iter().any(|k| *k <= 0) {
        return Err(GraphError::Format(format!("a kernel of {kernel:?} for sizes {:?}", x.dims)));
    }
    if node.outputs.iter().flatten().count() > 1 {
        return Ok(false);
    }
    let list = |name: &str| {
        node.ints(name)
            .filter(|list| list.len() == rank && list.iter().all(|v| *v > 0))
            .unwrap_or_else(|| vec![1; rank])
    };
    let (stride, dilation) = (list("strides"), list("dilations"));
    let mut pads = padding(node, &x.dims[2..], &kernel, &stride, &dilation);
    let is_ceiled = node.int("ceil_mode", 0) == 1;
    let mut input = l.value(node.input(0))?;
    if (0..rank).any(|at| pads[at] != pads[at + rank]) {
        let mut list = Vec::new();
        for at in (0..rank).rev() {
            list.extend([pads[at], pads[at + rank]]);
            x.dims[at + 2] =
                x.dims[at + 2].saturating_add(pads[at]).saturating_add(pads[at + rank]);
        }
        x = Fact::of(x.dtype, x.dims)?;
        let arguments = [("self", Argument::Value(input)), ("pad", numbers(&list))];
        input = l.step(node, "aten.constant_pad_nd.default", &arguments, &x);
        pads = vec![0; 2 * rank];
    }
    pads.truncate(rank);
    let window = Window { kernel, stride, padding: pads, dilation, ceil: is_ceiled };
    let result = Fact::of(x.dtype, window.result(&x.dims))?;
    let arguments = [
        ("self", Argument::Value(input)),
        ("kernel_size", numbers(&window.kernel)),
        ("stride", numbers(&window.stride)),
        ("padding", numbers(&window.padding)),
        ("dilation", numbers(&window.dilation)),
        ("ceil_mode", Argument::Bool(window.ceil)),
    ];
    l.result(node, &format!("aten.{kind}_pool{rank}d.default"), &arguments, result)
}

/// `F.adaptive_avg_pool2d` to one element; a maximum is that over a window of the whole.
fn global(l: &mut Lowering<'_>, node: &Node, kind: &str) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let rank = x.rank().saturating_sub(2);
    if !(1..=3).contains(&rank) {
        return Err(GraphError::Format(format!("an input of sizes {:?}", x.dims)));
    }
    let mut dims = x.dims.clone();
    dims[2..].fill(1);
    let result = Fact::of(x.dtype, dims)?;
    let size = if kind == "max" {
        ("kernel_size", numbers(&x.dims[2..]))
    } else {
        ("output_size", numbers(&vec![1; rank]))
    };
    let input = ("self", Argument::Value(l.value(node.input(0))?));
    l.result(node, &format!("aten.{kind}_pool{rank}d.default"), &[input, size], result)
}

/// `F.interpolate`.
fn resize(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let rank = x.rank().saturating_sub(2);
    let given = |l: &Lowering<'_>, at: usize| -> Result<Option<Vec<i64>>, GraphError> {
        let Some(name) = node.input(at) else { return Ok(None) };
        if l.fact(Some(name))?.elements() == 0 { Ok(None) } else { l.ints(node, at, "") }
    };
    let scales_at = if node.operator == "Upsample" || l.model.opset < 11 { 1 } else { 2 };
    let mut dims = match given(l, 3)? {
        Some(sizes) => sizes,
        None => {
            let scales = match node.input(scales_at) {
                Some(name) => {
                    l.fact(Some(name))?.known.as_ref().map(super::super::fact::Known::floats)
                }
                None => match node.attributes.get("scales") {
                    Some(Attribute::Floats(scales)) => Some(scales.clone()),
                    _ => None,
                },
            };
            match scales {
                Some(scales) => {
                    let scaled = |(size, scale): (&i64, f64)| (*size as f64 * scale).floor() as i64;
                    x.dims.iter().zip(scales).map(scaled).collect()
                }
                // Weights of another file: what the file says of the result.
                None => match node.output().and_then(|name| l.declared(name)) {
                    Some(declared) => declared.dims,
                    None => {
                        return Err(GraphError::Size {
                            value: l.title_of_result(node),
                            reason: "its scales are not in the file".to_owned(),
                        });
                    }
                },
            }
        }
    };
    if let Some(axes) = node.ints("axes").filter(|axes| axes.len() == dims.len()) {
        let mut whole = x.dims.clone();
        for (axis, size) in axes.into_iter().zip(&dims) {
            let at = x.axis(axis)?;
            whole[at] = *size;
        }
        dims = whole;
    }
    if dims.len() != x.rank() || !(1..=3).contains(&rank) || dims[..2] != x.dims[..2] {
        return Err(GraphError::Format(format!("sizes {:?} to {dims:?}", x.dims)));
    }
    let result = Fact::of(x.dtype, dims)?;
    let kind = match (node.text("mode").unwrap_or("nearest"), rank) {
        ("linear", 1) => "linear1d",
        ("linear", 2) => "bilinear2d",
        ("linear", _) => "trilinear3d",
        ("cubic", 2) => "bicubic2d",
        (_, 1) => "nearest1d",
        (_, 2) => "nearest2d",
        _ => "nearest3d",
    };
    let input = ("self", Argument::Value(l.value(node.input(0))?));
    l.result(node, &format!("aten.upsample_{kind}.vec"), &[input], result)
}

/// `F.pixel_shuffle`.
fn pixel_shuffle(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let factor = node.int("blocksize", 1);
    let [n, c, h, w] = x.dims.as_slice() else { return Ok(false) };
    let area = factor.saturating_mul(factor);
    if factor <= 0 || c % area != 0 {
        return Err(GraphError::Format(format!("blocks of {factor} in sizes {:?}", x.dims)));
    }
    let dims = vec![*n, c / area, h.saturating_mul(factor), w.saturating_mul(factor)];
    let result = Fact::of(x.dtype, dims)?;
    let input = ("self", Argument::Value(l.value(node.input(0))?));
    l.result(
        node,
        "aten.pixel_shuffle.default",
        &[input, ("upscale_factor", Argument::Int(factor))],
        result,
    )
}
