//! Tensors that are made of nothing.

use super::super::fact::Fact;
use super::super::model::Node;
use super::{Lowering, numbers};
use crate::dtype::DType;
use crate::error::GraphError;
use crate::graph::Argument;

/// Runs an operator that makes a tensor.
pub(super) fn lower(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    match node.operator.as_str() {
        "ConstantOfShape" => full(l, node),
        "Range" => range(l, node),
        "RandomNormalLike" | "RandomUniformLike" => like(l, node),
        "Trilu" => trilu(l, node),
        _ => Ok(false),
    }
}

/// `torch.full`.
fn full(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let dims = l.ints(node, 0, "")?.unwrap_or_default();
    let dtype = node.tensor("value").map_or(DType::F32, |fact| fact.dtype);
    let result = Fact::of(dtype, dims)?;
    let size = numbers(&result.dims);
    l.result(node, "aten.full.default", &[("size", size)], result)
}

/// `torch.arange`.
fn range(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let number = |at: usize| -> Result<f64, GraphError> {
        l.fact(node.input(at))?.scalar().ok_or_else(|| GraphError::Size {
            value: l.title_of_result(node),
            reason: "it follows from values, which are not computed".to_owned(),
        })
    };
    let (start, end, step) = (number(0)?, number(1)?, number(2)?);
    let count = ((end - start) / step).ceil();
    if !count.is_finite() {
        return Err(GraphError::Format(format!("numbers from {start} to {end} by {step}")));
    }
    let result = Fact::of(l.fact(node.input(0))?.dtype, vec![count.max(0.0) as i64])?;
    let size = numbers(&result.dims);
    l.result(node, "aten.arange.start_step", &[("size", size)], result)
}

fn like(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = Fact { known: None, ..l.fact(node.input(0))?.clone() };
    let input = ("self", Argument::Value(l.value(node.input(0))?));
    let is_normal = node.operator == "RandomNormalLike";
    let target = if is_normal { "aten.randn_like.default" } else { "aten.rand_like.default" };
    l.result(node, target, &[input], x)
}

/// `torch.tril`, `torch.triu`.
fn trilu(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = Fact { known: None, ..l.fact(node.input(0))?.clone() };
    let input = ("self", Argument::Value(l.value(node.input(0))?));
    let target = if node.int("upper", 1) == 1 { "aten.triu.default" } else { "aten.tril.default" };
    l.result(node, target, &[input], x)
}
