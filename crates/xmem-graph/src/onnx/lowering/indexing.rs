//! Elements by their indices.

use super::super::fact::Fact;
use super::super::model::Node;
use super::Lowering;
use crate::dtype::DType;
use crate::error::GraphError;
use crate::graph::Argument;

/// Runs an operator with indices.
pub(super) fn lower(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    match node.operator.as_str() {
        "Gather" => gather(l, node),
        "GatherElements" => gather_elements(l, node),
        "GatherND" => gather_nd(l, node),
        "ScatterElements" | "ScatterND" => scatter(l, node),
        "TopK" => top_k(l, node),
        "OneHot" => one_hot(l, node),
        _ => Ok(false),
    }
}

/// `F.embedding` of a weight, `x[i]` of a number, else `torch.index_select` or `x[indices]`.
fn gather(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let (x, indices) = (l.fact(node.input(0))?.clone(), l.fact(node.input(1))?.clone());
    let axis = x.axis(node.int("axis", 0))?;
    let dims = [&x.dims[..axis], &indices.dims, &x.dims[axis + 1..]].concat();
    let result = Fact::of(x.dtype, dims)?;
    let is_weight = node.input(0).is_some_and(|name| l.model.initializers.contains_key(&name));
    if is_weight && axis == 0 && x.rank() == 2 && x.dtype.is_floating_point() {
        let weight = super::layers::weight_of(l, node, 0, &x.dims)?;
        let indices = Argument::Value(l.value(node.input(1))?);
        let arguments = [("weight", Argument::Value(weight)), ("indices", indices)];
        return l.result(node, "aten.embedding.default", &arguments, result);
    }
    let this = ("self", Argument::Value(l.value(node.input(0))?));
    let dim = ("dim", Argument::Int(axis as i64));
    if indices.rank() == 0
        && let Some(&[index]) = indices.known_ints()
    {
        let size = x.dims[axis];
        if !(-size..size).contains(&index) {
            return Err(GraphError::Format(format!("the index {index} of a size of {size}")));
        }
        let arguments = [this, dim, ("index", Argument::Int(index))];
        return l.result(node, "aten.select.int", &arguments, result);
    }
    let value = l.value(node.input(1))?;
    if indices.rank() == 1 {
        let arguments = [this, dim, ("index", Argument::Value(value))];
        return l.result(node, "aten.index_select.default", &arguments, result);
    }
    let mut list = vec![None; axis];
    list.push(Some(value));
    l.result(node, "aten.index.Tensor", &[this, ("indices", Argument::Values(list))], result)
}

/// `torch.gather`.
fn gather_elements(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let (x, indices) = (l.fact(node.input(0))?.clone(), l.fact(node.input(1))?.clone());
    let axis = x.axis(node.int("axis", 0))?;
    if indices.rank() != x.rank() {
        return Err(GraphError::Format(format!("indices of {:?} for {:?}", indices.dims, x.dims)));
    }
    let result = Fact::of(x.dtype, indices.dims)?;
    let arguments = [
        ("self", Argument::Value(l.value(node.input(0))?)),
        ("dim", Argument::Int(axis as i64)),
        ("index", Argument::Value(l.value(node.input(1))?)),
    ];
    l.result(node, "aten.gather.default", &arguments, result)
}

/// `x[a, b]`, whose indices ONNX has in one tensor.
fn gather_nd(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let (x, indices) = (l.fact(node.input(0))?.clone(), l.fact(node.input(1))?.clone());
    let batch = usize::try_from(node.int("batch_dims", 0)).unwrap_or(0);
    let Some((&depth, places)) = indices.dims.split_last() else { return Ok(false) };
    let skipped = usize::try_from(depth).ok().and_then(|depth| depth.checked_add(batch));
    let rest = skipped.and_then(|skipped| x.dims.get(skipped..));
    let rest = rest.ok_or_else(|| {
        GraphError::Format(format!("indices of {:?} for {:?}", indices.dims, x.dims))
    })?;
    let result = Fact::of(x.dtype, [places, rest].concat())?;
    let arguments = [
        ("self", Argument::Value(l.value(node.input(0))?)),
        ("indices", Argument::Values(vec![Some(l.value(node.input(1))?)])),
    ];
    l.result(node, "aten.index.Tensor", &arguments, result)
}

/// `torch.scatter`, and `x[indices] = values` of a copy.
fn scatter(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = Fact { known: None, ..l.fact(node.input(0))?.clone() };
    let axis = if x.rank() > 0 { x.axis(node.int("axis", 0))? } else { 0 };
    let arguments = [
        ("self", Argument::Value(l.value(node.input(0))?)),
        ("dim", Argument::Int(axis as i64)),
        ("index", Argument::Value(l.value(node.input(1))?)),
        ("src", Argument::Value(l.value(node.input(2))?)),
    ];
    l.result(node, "aten.scatter.src", &arguments, x)
}

/// `torch.topk`.
fn top_k(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let axis = x.axis(node.int("axis", -1))?;
    let count = l.ints(node, 1, "k")?.and_then(|k| k.first().copied()).unwrap_or(1);
    if !(0..=x.dims[axis]).contains(&count) {
        return Err(GraphError::Format(format!("the {count} largest of {}", x.dims[axis])));
    }
    let mut dims = x.dims.clone();
    dims[axis] = count;
    let results = vec![Fact::of(x.dtype, dims.clone())?, Fact::of(DType::I64, dims)?];
    let arguments = [
        ("self", Argument::Value(l.value(node.input(0))?)),
        ("k", Argument::Int(count)),
        ("dim", Argument::Int(axis as i64)),
    ];
    l.results(node, "aten.topk.default", &arguments, results)
}

/// `F.one_hot`.
fn one_hot(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let x = l.fact(node.input(0))?.clone();
    let depth = l.ints(node, 1, "depth")?.and_then(|d| d.first().copied()).unwrap_or(1);
    let result = Fact::of(DType::I64, [x.dims.as_slice(), &[depth]].concat())?;
    let arguments =
        [("self", Argument::Value(l.value(node.input(0))?)), ("num_classes", Argument::Int(depth))];
    l.result(node, "aten.one_hot.default", &arguments, result)
}
