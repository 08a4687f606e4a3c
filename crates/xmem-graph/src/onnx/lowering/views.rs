//! Operators that look at the same memory in other sizes, and those that copy for it.

use super::super::fact::{Fact, broadcast, elements};
use super::super::model::Node;
use super::super::sizes::{reshaped, squeezed, unsqueezed};
use super::{Lowering, numbers};
use crate::error::GraphError;
use crate::graph::{Argument, ValueId};

/// Runs a view.
pub(super) fn lower(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    match node.operator.as_str() {
        "Reshape" => reshape(l, node),
        "Flatten" => flatten(l, node),
        "Transpose" => transpose(l, node),
        "Squeeze" => squeeze(l, node),
        "Unsqueeze" => unsqueeze(l, node),
        "Expand" => expand(l, node),
        "Tile" => tile(l, node),
        "Concat" => concat(l, node),
        "Split" => split(l, node),
        "Slice" => slice(l, node),
        "Pad" => pad(l, node),
        "SpaceToDepth" => space_to_depth(l, node),
        _ => Ok(false),
    }
}

fn input(l: &mut Lowering<'_>, node: &Node) -> Result<(&'static str, Argument), GraphError> {
    Ok(("self", Argument::Value(l.value(node.input(0))?)))
}

fn reshape(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let to = l.ints(node, 1, "shape")?.unwrap_or_default();
    let result = Fact::of(x.dtype, reshaped(&x.dims, &to, node.int("allowzero", 0) == 1)?)?;
    let x = input(l, node)?;
    let shape = numbers(&result.dims);
    l.result(node, "aten.reshape.default", &[x, ("shape", shape)], result)
}

fn flatten(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let axis = node.int("axis", 1);
    let axis = if axis == x.rank() as i64 { x.rank() } else { x.axis(axis)? };
    let count = |dims: &[i64]| elements(dims).unwrap_or(i64::MAX);
    let result = Fact::of(x.dtype, vec![count(&x.dims[..axis]), count(&x.dims[axis..])])?;
    let x = input(l, node)?;
    let shape = numbers(&result.dims);
    l.result(node, "aten.reshape.default", &[x, ("shape", shape)], result)
}

fn transpose(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let rank = x.rank() as i64;
    let order = node.ints("perm").unwrap_or_else(|| (0..rank).rev().collect());
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..rank).collect::<Vec<i64>>() {
        return Err(GraphError::Format(format!("the order {order:?} of {rank} dimensions")));
    }
    let result = Fact::of(x.dtype, order.iter().map(|&at| x.dims[at as usize]).collect())?;
    let x = input(l, node)?;
    l.result(node, "aten.permute.default", &[x, ("dims", numbers(&order))], result)
}

fn squeeze(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let axes = l.ints(node, 1, "axes")?;
    let dims = squeezed(&x.dims, axes.as_deref())
        .ok_or_else(|| GraphError::Format(format!("axes {axes:?} of sizes {:?}", x.dims)))?;
    if elements(&dims) != elements(&x.dims) {
        return Err(GraphError::Shapes(format!("{:?} cannot be squeezed to {dims:?}", x.dims)));
    }
    let result = Fact::of(x.dtype, dims)?;
    let x = input(l, node)?;
    match axes {
        Some(axes) => l.result(node, "aten.squeeze.dims", &[x, ("dim", numbers(&axes))], result),
        None => l.result(node, "aten.squeeze.default", &[x], result),
    }
}

fn unsqueeze(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let axes = l.ints(node, 1, "axes")?.unwrap_or_default();
    let dims = unsqueezed(&x.dims, &axes)
        .ok_or_else(|| GraphError::Format(format!("axes {axes:?} of sizes {:?}", x.dims)))?;
    let result = Fact::of(x.dtype, dims)?;
    let x = input(l, node)?;
    match axes.as_slice() {
        [axis] => {
            l.result(node, "aten.unsqueeze.default", &[x, ("dim", Argument::Int(*axis))], result)
        }
        _ => {
            let shape = numbers(&result.dims);
            l.result(node, "aten.reshape.default", &[x, ("shape", shape)], result)
        }
    }
}

fn expand(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let to = l.ints(node, 1, "shape")?.unwrap_or_default();
    if let Some(wrong) = to.iter().find(|size| **size < 0) {
        return Err(GraphError::Format(format!("the size {wrong}")));
    }
    let result = Fact::of(x.dtype, broadcast([x.dims.as_slice(), &to])?)?;
    let x = input(l, node)?;
    let size = numbers(&result.dims);
    l.result(node, "aten.expand.default", &[x, ("size", size)], result)
}

fn tile(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let repeats = l.ints(node, 1, "repeats")?.unwrap_or_default();
    if repeats.len() != x.rank() || repeats.iter().any(|r| *r < 0) {
        return Err(GraphError::Format(format!("{repeats:?} repeats of sizes {:?}", x.dims)));
    }
    let dims = x.dims.iter().zip(&repeats).map(|(d, r)| d.saturating_mul(*r)).collect();
    let result = Fact::of(x.dtype, dims)?;
    let x = input(l, node)?;
    l.result(node, "aten.repeat.default", &[x, ("repeats", numbers(&repeats))], result)
}

fn concat(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let first = l.fact(node.input(0))?.clone();
    let axis = first.axis(node.int("axis", 0))?;
    let mut dims = first.dims.clone();
    dims[axis] = 0;
    let mut values = Vec::new();
    for name in &node.inputs {
        let fact = l.fact(*name)?;
        let same = fact.rank() == dims.len()
            && fact.dims.iter().zip(&dims).enumerate().all(|(at, (a, b))| at == axis || a == b);
        if !same {
            return Err(GraphError::Shapes(format!(
                "{:?} and {:?} differ in more than dimension {axis}",
                fact.dims, first.dims
            )));
        }
        dims[axis] = dims[axis].saturating_add(fact.dims[axis]);
        values.push(Some(l.value(*name)?));
    }
    let result = Fact::of(first.dtype, dims)?;
    let arguments = [("tensors", Argument::Values(values)), ("dim", Argument::Int(axis as i64))];
    l.result(node, "aten.cat.default", &arguments, result)
}

/// `torch.split`, in equal parts where the node has no sizes.
fn split(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let axis = x.axis(node.int("axis", 0))?;
    let whole = x.dims[axis];
    let given = l.ints(node, 1, "split")?;
    let sizes = given.unwrap_or_else(|| {
        let count = (node.outputs.len() as i64).max(1);
        let part = whole / count + i64::from(whole % count != 0);
        let size = |at: i64| (whole - at.saturating_mul(part)).clamp(0, part);
        (0..count).map(size).collect()
    });
    let sum = sizes.iter().try_fold(0_i64, |sum, s| sum.checked_add(*s));
    if sum != Some(whole) || sizes.iter().any(|s| *s < 0) || sizes.len() != node.outputs.len() {
        return Err(GraphError::Shapes(format!("parts of {sizes:?} of a size of {whole}")));
    }
    let mut facts = Vec::new();
    for size in &sizes {
        let mut dims = x.dims.clone();
        dims[axis] = *size;
        facts.push(Fact::of(x.dtype, dims)?);
    }
    let x = input(l, node)?;
    let arguments = [x, ("split_sizes", numbers(&sizes)), ("dim", Argument::Int(axis as i64))];
    l.listed(node, "aten.split_with_sizes.default", &arguments, facts)
}

/// `x[a:b]`, a dimension after another.
fn slice(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let starts = l.ints(node, 1, "starts")?.unwrap_or_default();
    let ends = l.ints(node, 2, "ends")?.unwrap_or_default();
    let axes = l.ints(node, 3, "axes")?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = l.ints(node, 4, "steps")?.unwrap_or_else(|| vec![1; starts.len()]);
    let mut value = l.value(node.input(0))?;
    let mut fact = x.clone();
    let parts = starts.iter().zip(&ends).zip(axes.iter().zip(&steps));
    let count = starts.len().min(ends.len()).min(axes.len()).min(steps.len());
    if count == 0 {
        return l.same(node);
    }
    for (at, ((start, end), (axis, step))) in parts.enumerate() {
        let axis = fact.axis(*axis)?;
        let size = fact.dims[axis];
        let is_flip = *step < 0;
        let wrap = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let (low, high) = if is_flip { (-1, size - 1) } else { (0, size) };
        let (from, to) = (wrap(*start).clamp(low, high), wrap(*end).clamp(low, high));
        let span = if is_flip { from - to } else { to - from };
        let stride = step.checked_abs().filter(|s| *s > 0);
        let stride = stride.ok_or_else(|| GraphError::Format("a step of zero".to_owned()))?;
        let length = span.max(0) / stride + i64::from(span.max(0) % stride != 0);
        fact.dims[axis] = length;
        fact = Fact::of(fact.dtype, fact.dims)?;
        let dim = ("dim", Argument::Int(axis as i64));
        let this = ("self", Argument::Value(value));
        let (target, arguments): (_, Vec<(&str, Argument)>) = if is_flip {
            ("aten.flip.default", vec![this, ("dims", numbers(&[axis as i64]))])
        } else {
            let range = [("start", from), ("end", to), ("step", stride)];
            let range = range.map(|(name, number)| (name, Argument::Int(number)));
            ("aten.slice.Tensor", [vec![this, dim], range.to_vec()].concat())
        };
        if at + 1 == count {
            return l.result(node, target, &arguments, fact);
        }
        value = l.step(node, target, &arguments, &fact);
    }
    Ok(true)
}

/// `F.pad`.
fn pad(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    if node.text("mode").is_some_and(|mode| mode != "constant") {
        return Ok(false);
    }
    let x = l.fact(node.input(0))?.clone();
    let pads = l.ints(node, 1, "pads")?.unwrap_or_default();
    let axes: Vec<usize> = match node.input(3) {
        Some(_) => {
            let axes = l.ints(node, 3, "axes")?.unwrap_or_default();
            axes.iter().map(|a| x.axis(*a)).collect::<Result<_, _>>()?
        }
        None => (0..x.rank()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(GraphError::Format(format!("pads of {pads:?} for sizes {:?}", x.dims)));
    }
    let mut dims = x.dims.clone();
    let mut list = vec![0; 2 * x.rank()];
    for (at, &axis) in axes.iter().enumerate() {
        let (before, after) = (pads[at], pads[at + axes.len()]);
        dims[axis] = dims[axis].saturating_add(before).saturating_add(after);
        let place = 2 * (x.rank() - 1 - axis);
        (list[place], list[place + 1]) = (before, after);
    }
    let result = Fact::of(x.dtype, dims)?;
    while let [rest @ .., 0, 0] = list.as_slice() {
        list.truncate(rest.len());
    }
    let x = input(l, node)?;
    l.result(node, "aten.constant_pad_nd.default", &[x, ("pad", numbers(&list))], result)
}

/// `F.pixel_unshuffle`: a permuted copy.
fn space_to_depth(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let block = node.int("blocksize", 1);
    let [n, c, h, w] = x.dims.as_slice() else { return Ok(false) };
    if block <= 0 || h % block != 0 || w % block != 0 {
        return Err(GraphError::Format(format!("blocks of {block} in sizes {:?}", x.dims)));
    }
    let split = [*n, *c, h / block, block, w / block, block];
    let order = [0, 1, 3, 5, 2, 4];
    let value = l.value(node.input(0))?;
    let view = |l: &mut Lowering<'_>, value: ValueId, dims: &[i64]| {
        let fact = Fact::of(x.dtype, dims.to_vec())?;
        let arguments = [("self", Argument::Value(value)), ("size", numbers(dims))];
        Ok::<_, GraphError>(l.step(node, "aten.view.default", &arguments, &fact))
    };
    let value = view(l, value, &split)?;
    let turned = Fact::of(x.dtype, order.iter().map(|&at| split[at as usize]).collect())?;
    let arguments = [("self", Argument::Value(value)), ("dims", numbers(&order))];
    let value = l.step(node, "aten.permute.default", &arguments, &turned);
    let area = block.saturating_mul(block);
    let result = Fact::of(x.dtype, vec![*n, c.saturating_mul(area), h / block, w / block])?;
    let shape = numbers(&result.dims);
    l.result(
        node,
        "aten.reshape.default",
        &[("self", Argument::Value(value)), ("shape", shape)],
        result,
    )
}
