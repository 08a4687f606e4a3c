//! Reductions.

use super::super::fact::Fact;
use super::super::model::Node;
use super::{Lowering, numbers};
use crate::dtype::DType;
use crate::error::GraphError;
use crate::graph::Argument;

/// Runs a reduction.
pub(super) fn lower(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    match node.operator.as_str() {
        "ReduceMean" => reduce(l, node, "aten.mean.dim"),
        "ReduceSum" => reduce(l, node, "aten.sum.dim_IntList"),
        "ReduceMax" => reduce(l, node, "aten.amax.default"),
        "ReduceMin" => reduce(l, node, "aten.amin.default"),
        "ReduceL2" => reduce(l, node, "aten.linalg_vector_norm.default"),
        "ReduceLogSumExp" => reduce(l, node, "aten.logsumexp.default"),
        "ArgMax" => index(l, node, "aten.argmax.default"),
        "ArgMin" => index(l, node, "aten.argmin.default"),
        "CumSum" => cumulative(l, node),
        _ => Ok(false),
    }
}

/// Sizes without the reduced ones.
fn reduced(x: &Fact, axes: &[usize], keeps: bool) -> Vec<i64> {
    let dims = x.dims.iter().enumerate();
    if keeps {
        dims.map(|(at, &d)| if axes.contains(&at) { 1 } else { d }).collect()
    } else {
        dims.filter(|(at, _)| !axes.contains(at)).map(|(_, &d)| d).collect()
    }
}

fn reduce(l: &mut Lowering<'_>, node: &Node, target: &str) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let given = l.ints(node, 1, "axes")?.unwrap_or_default();
    if given.is_empty() && node.int("noop_with_empty_axes", 0) == 1 {
        return l.same(node);
    }
    let axes: Vec<usize> = if given.is_empty() {
        (0..x.rank()).collect()
    } else {
        given.iter().map(|a| x.axis(*a)).collect::<Result<_, _>>()?
    };
    let keeps = node.int("keepdims", 1) == 1;
    let result = Fact::of(x.dtype, reduced(&x, &axes, keeps))?;
    let list: Vec<i64> = axes.iter().map(|at| *at as i64).collect();
    let arguments = [
        ("self", Argument::Value(l.value(node.input(0))?)),
        ("dim", numbers(&list)),
        ("keepdim", Argument::Bool(keeps)),
    ];
    l.result(node, target, &arguments, result)
}

fn index(l: &mut Lowering<'_>, node: &Node, target: &str) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let axis = x.axis(node.int("axis", 0))?;
    let keeps = node.int("keepdims", 1) == 1;
    let result = Fact::of(DType::I64, reduced(&x, &[axis], keeps))?;
    let arguments = [
        ("self", Argument::Value(l.value(node.input(0))?)),
        ("dim", Argument::Int(axis as i64)),
        ("keepdim", Argument::Bool(keeps)),
    ];
    l.result(node, target, &arguments, result)
}

fn cumulative(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = Fact { known: None, ..l.fact(node.input(0))?.clone() };
    let axis = l.ints(node, 1, "axis")?.and_then(|a| a.first().copied()).unwrap_or(0);
    let axis = x.axis(axis)?;
    let arguments =
        [("self", Argument::Value(l.value(node.input(0))?)), ("dim", Argument::Int(axis as i64))];
    l.result(node, "aten.cumsum.default", &arguments, x)
}
