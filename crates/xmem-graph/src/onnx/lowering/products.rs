//! Products of matrices and linear layers.

use super::super::fact::{Fact, broadcast};
use super::super::model::Node;
use super::layers::weight_of;
use super::{Lowering, numbers};
use crate::error::GraphError;
use crate::graph::Argument;

/// Runs a product.
pub(super) fn lower(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    match node.operator.as_str() {
        "MatMul" => matmul(l, node),
        "Gemm" => gemm(l, node),
        "xmem::Linear" => linear(l, node),
        "Einsum" => einsum(l, node),
        _ => Ok(false),
    }
}

/// Sizes of a product (numpy.matmul).
fn product(a: &Fact, b: &Fact) -> Result<Fact, GraphError> {
    let wrong = || GraphError::Shapes(format!("{:?} cannot be multiplied by {:?}", a.dims, b.dims));
    let (left, right) = match (a.dims.as_slice(), b.dims.as_slice()) {
        ([], _) | (_, []) => return Err(wrong()),
        ([k], _) => (vec![1, *k], b.dims.clone()),
        (_, [k]) => (a.dims.clone(), vec![*k, 1]),
        _ => (a.dims.clone(), b.dims.clone()),
    };
    let ([before @ .., m, k], [others @ .., k2, n]) = (left.as_slice(), right.as_slice()) else {
        return Err(wrong());
    };
    if k != k2 {
        return Err(wrong());
    }
    let mut dims = broadcast([before, others])?;
    if a.rank() > 1 {
        dims.push(*m);
    }
    if b.rank() > 1 {
        dims.push(*n);
    }
    Fact::of(a.dtype, dims)
}

fn matmul(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let result = product(l.fact(node.input(0))?, l.fact(node.input(1))?)?;
    let arguments = [
        ("self", Argument::Value(l.value(node.input(0))?)),
        ("other", Argument::Value(l.value(node.input(1))?)),
    ];
    l.result(node, "aten.matmul.default", &arguments, result)
}

/// `F.linear`, whose weight has the results first.
fn linear(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let (x, weight) = (l.fact(node.input(0))?.clone(), l.fact(node.input(1))?.clone());
    let [a, b] = weight.dims.as_slice() else { return Ok(false) };
    let (within, without) = if node.int("transB", 0) == 1 { (*b, *a) } else { (*a, *b) };
    if x.dims.last() != Some(&within) {
        return Err(GraphError::Shapes(format!(
            "{:?} cannot be multiplied by weights of {:?}",
            x.dims,
            [within, without]
        )));
    }
    let mut dims = x.dims.clone();
    if let Some(last) = dims.last_mut() {
        *last = without;
    }
    let result = Fact::of(x.dtype, dims)?;
    let weight = weight_of(l, node, 1, &[without, within])?;
    let bias = match node.input(2) {
        Some(_) => Argument::Value(weight_of(l, node, 2, &[without])?),
        None => Argument::None,
    };
    let input = l.value(node.input(0))?;
    let arguments =
        [("input", Argument::Value(input)), ("weight", Argument::Value(weight)), ("bias", bias)];
    l.result(node, "aten.linear.default", &arguments, result)
}

/// A layer, or `torch.addmm` where the weight has the inputs first.
fn gemm(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let (a, b) = (l.fact(node.input(0))?.clone(), l.fact(node.input(1))?.clone());
    let is_weight = node.input(1).is_some_and(|name| l.model.initializers.contains_key(&name));
    if is_weight && node.int("transA", 0) == 0 && node.int("transB", 0) == 1 {
        return linear(l, node);
    }
    let turned = |l: &mut Lowering<'_>, at: usize, fact: &Fact, flag: &str| {
        let value = if at == 1 && is_weight {
            weight_of(l, node, at, &fact.dims)?
        } else {
            l.value(node.input(at))?
        };
        let [rows, columns] = fact.dims.as_slice() else {
            return Err(GraphError::Shapes(format!("{:?} is no matrix", fact.dims)));
        };
        if node.int(flag, 0) == 0 {
            return Ok((value, fact.clone()));
        }
        let fact = Fact::of(fact.dtype, vec![*columns, *rows])?;
        Ok((l.step(node, "aten.t.default", &[("self", Argument::Value(value))], &fact), fact))
    };
    let (left, a) = turned(l, 0, &a, "transA")?;
    let (right, b) = turned(l, 1, &b, "transB")?;
    let result = product(&a, &b)?;
    let (left, right) = (Argument::Value(left), Argument::Value(right));
    match node.input(2) {
        Some(_) => {
            let dims = l.fact(node.input(2))?.dims.clone();
            let bias = Argument::Value(weight_of(l, node, 2, &dims)?);
            let arguments = [("self", bias), ("mat1", left), ("mat2", right)];
            l.result(node, "aten.addmm.default", &arguments, result)
        }
        None => l.result(node, "aten.mm.default", &[("self", left), ("mat2", right)], result),
    }
}

/// A product of two operands, as `torch.einsum` makes it: a product of batches of matrices
/// (aten/src/ATen/native/Linear.cpp, `einsum`).
fn einsum(l: &mut Lowering<'_>, node: &Node) -> Result<bool, GraphError> {
    let equation: String =
        node.text("equation").unwrap_or_default().chars().filter(|c| !c.is_whitespace()).collect();
    let Some((operands, result)) = equation.split_once("->") else { return Ok(false) };
    let Some((left, right)) = operands.split_once(',') else { return Ok(false) };
    let is_plain = |text: &str| {
        let is_new = |(at, c): (usize, char)| c.is_ascii_alphabetic() && text.find(c) == Some(at);
        text.char_indices().all(is_new)
    };
    if !is_plain(left) || !is_plain(right) || !is_plain(result) {
        return Ok(false);
    }
    let (a, b) = (l.fact(node.input(0))?.clone(), l.fact(node.input(1))?.clone());
    if a.rank() != left.len() || b.rank() != right.len() {
        return Err(GraphError::Format(format!("{:?} and {:?} for `{equation}`", a.dims, b.dims)));
    }
    let size = |label: char| {
        let of = |labels: &str, fact: &Fact| Some(fact.dims[labels.find(label)?]);
        of(left, &a).or_else(|| of(right, &b)).unwrap_or(1)
    };
    let kinds = |mine: &str, other: &str| -> (String, String, String) {
        let pick = |is: &dyn Fn(char) -> bool| mine.chars().filter(|c| is(*c)).collect();
        (
            pick(&|c| other.contains(c) && result.contains(c)),
            pick(&|c| !other.contains(c)),
            pick(&|c| other.contains(c) && !result.contains(c)),
        )
    };
    let (batch, rows, within) = kinds(left, right);
    let (_, columns, _) = kinds(right, left);
    if rows.chars().chain(columns.chars()).any(|c| !result.contains(c)) {
        return Ok(false);
    }
    let count = |labels: &str| labels.chars().fold(1_i64, |p, c| p.saturating_mul(size(c)));
    let mut ready = |at: usize, labels: &str, fact: &Fact, order: &str, dims: [i64; 3]| {
        let order: Vec<i64> =
            order.chars().filter_map(|c| labels.find(c)).map(|at| at as i64).collect();
        let turned =
            Fact::of(fact.dtype, order.iter().map(|&at| fact.dims[at as usize]).collect())?;
        let value = Argument::Value(l.value(node.input(at))?);
        let value = l.step(
            node,
            "aten.permute.default",
            &[("self", value), ("dims", numbers(&order))],
            &turned,
        );
        let whole = Fact::of(fact.dtype, dims.to_vec())?;
        let arguments = [("self", Argument::Value(value)), ("shape", numbers(&dims))];
        Ok::<_, GraphError>((l.step(node, "aten.reshape.default", &arguments, &whole), whole))
    };
    let (m, k, n, outer) = (count(&rows), count(&within), count(&columns), count(&batch));
    let (left_value, left_fact) =
        ready(0, left, &a, &format!("{batch}{rows}{within}"), [outer, m, k])?;
    let (right_value, right_fact) =
        ready(1, right, &b, &format!("{batch}{within}{columns}"), [outer, k, n])?;
    let bmm = product(&left_fact, &right_fact)?;
    let arguments = [("self", Argument::Value(left_value)), ("mat2", Argument::Value(right_value))];
    let value = l.step(node, "aten.bmm.default", &arguments, &bmm);
    let made = format!("{batch}{rows}{columns}");
    let dims: Vec<i64> = made.chars().map(size).collect();
    let split = Fact::of(a.dtype, dims.clone())?;
    let arguments = [("self", Argument::Value(value)), ("size", numbers(&dims))];
    let value = l.step(node, "aten.view.default", &arguments, &split);
    let order: Vec<i64> = result.chars().filter_map(|c| made.find(c)).map(|at| at as i64).collect();
    let last = Fact::of(a.dtype, order.iter().map(|&at| dims[at as usize]).collect())?;
    l.result(
        node,
        "aten.permute.default",
        &[("self", Argument::Value(value)), ("dims", numbers(&order))],
        last,
    )
}
