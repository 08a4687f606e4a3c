//! Arithmetic of shapes: operators whose operands are small constants are computed, as Python computes them before
//! PyTorch sees a size.

use super::fact::{Fact, Known, MAX_KNOWN, broadcast, place};
use super::model::Node;
use super::sizes::{reshaped, squeezed, unsqueezed};
use crate::dtype::DType;

/// The results of a node whose operands are known; `None` if they are not, or the operator is none of shapes.
pub(super) fn fold(node: &Node, inputs: &[Option<&Fact>]) -> Option<Vec<Fact>> {
    let first = || inputs.first().copied().flatten();
    if let "Shape" | "Size" = node.operator.as_str() {
        return Some(vec![shape(node, first()?)?]);
    }
    if inputs.iter().flatten().any(|fact| fact.known.is_none()) {
        return None;
    }
    let operand = |at: usize| inputs.get(at).copied().flatten();
    let one = |fact: Fact| Some(vec![fact]);
    match node.operator.as_str() {
        "Add" | "Sub" | "Mul" | "Div" | "Mod" | "Pow" | "Equal" | "Less" | "Greater"
        | "LessOrEqual" | "GreaterOrEqual" | "And" | "Or" | "Max" | "Min" => {
            one(binary(node, first()?, operand(1)?)?)
        }
        "Neg" | "Abs" | "Not" | "Sqrt" | "Reciprocal" | "Floor" | "Ceil" | "Cast" => {
            one(unary(node, first()?)?)
        }
        "Where" => one(choice(first()?, operand(1)?, operand(2)?)?),
        "Gather" => one(gather(node, first()?, operand(1)?)?),
        "Slice" => one(slice(node, first()?, &[1, 2, 3, 4].map(operand))?),
        "Concat" => one(concat(node, &inputs.iter().copied().collect::<Option<Vec<_>>>()?)?),
        "Split" => split(node, first()?, operand(1)),
        "Squeeze" | "Unsqueeze" | "Reshape" => one(resized(node, first()?, operand(1))?),
        "Transpose" => one(transposed(node, first()?)?),
        "Range" => one(range(first()?, operand(1)?, operand(2)?)?),
        "ConstantOfShape" => one(constant_of_shape(node, first()?)?),
        "Expand" => one(expand(first()?, operand(1)?)?),
        "ReduceProd" | "ReduceSum" | "ReduceMax" | "ReduceMin" => one(reduced(node, first()?)?),
        _ => None,
    }
}

fn is_small(dims: &[i64]) -> bool {
    let count = dims.iter().try_fold(1_i64, |product, d| product.checked_mul(*d));
    count.is_some_and(|count| (0..=MAX_KNOWN as i64).contains(&count))
}

fn shape(node: &Node, x: &Fact) -> Option<Fact> {
    if node.operator == "Size" {
        return Some(Fact::ints(Vec::new(), vec![x.elements()]));
    }
    let rank = x.rank() as i64;
    let clamp = |at: i64| if at < 0 { (at + rank).max(0) } else { at.min(rank) };
    let (start, end) = (clamp(node.int("start", 0)), clamp(node.int("end", rank)));
    let dims = x.dims.get(start as usize..end.max(start) as usize)?.to_vec();
    Some(Fact::ints(vec![dims.len() as i64], dims))
}

/// Places of the operands of an elementwise operator, by place of the result.
fn places(dims: &[i64], of: &[i64]) -> Vec<usize> {
    let count = dims.iter().product::<i64>().max(0) as usize;
    let skipped = dims.len() - of.len();
    (0..count)
        .map(|flat| {
            let (mut rest, mut at, mut stride) = (flat, 0, 1);
            for (axis, &size) in dims.iter().enumerate().rev() {
                let index = rest % size.max(1) as usize;
                rest /= size.max(1) as usize;
                if let Some(&own) = axis.checked_sub(skipped).and_then(|axis| of.get(axis)) {
                    at += if own == 1 { 0 } else { index * stride };
                    stride *= own.max(0) as usize;
                }
            }
            at
        })
        .collect()
}

/// Operands in the sizes of the result.
fn spread(facts: &[&Fact]) -> Option<(Vec<i64>, Vec<Known>)> {
    let dims = broadcast(facts.iter().map(|fact| fact.dims.as_slice())).ok()?;
    if !is_small(&dims) {
        return None;
    }
    let values = facts.iter().map(|fact| fact.known.as_ref()?.at(&places(&dims, &fact.dims)));
    Some((dims.clone(), values.collect::<Option<_>>()?))
}

fn binary(node: &Node, a: &Fact, b: &Fact) -> Option<Fact> {
    // A list of floats may be a weight.
    let is_list = |fact: &Fact| matches!(&fact.known, Some(Known::Floats(v)) if v.len() > 1);
    if is_list(a) || is_list(b) {
        return None;
    }
    let (dims, values) = spread(&[a, b])?;
    let operator = node.operator.as_str();
    let is_logical = matches!(
        operator,
        "Equal" | "Less" | "Greater" | "LessOrEqual" | "GreaterOrEqual" | "And" | "Or"
    );
    let known = match values.as_slice() {
        [Known::Ints(a), Known::Ints(b)] => {
            let pairs = a.iter().zip(b);
            Known::Ints(pairs.map(|(a, b)| int(operator, *a, *b)).collect::<Option<_>>()?)
        }
        [a, b] => {
            let (a, b) = (a.floats(), b.floats());
            let pairs = a.into_iter().zip(b);
            if is_logical {
                let logical = |(a, b): (f64, f64)| Some(i64::from(compared(operator, a, b)?));
                Known::Ints(pairs.map(logical).collect::<Option<_>>()?)
            } else {
                Known::Floats(pairs.map(|(a, b)| float(operator, a, b)).collect::<Option<_>>()?)
            }
        }
        _ => return None,
    };
    let dtype = if is_logical { DType::Bool } else { a.dtype };
    Some(Fact { dtype, dims, known: Some(known) })
}

fn int(operator: &str, a: i64, b: i64) -> Option<i64> {
    match operator {
        "Add" => a.checked_add(b),
        "Sub" => a.checked_sub(b),
        "Mul" => a.checked_mul(b),
        // As C++ rounds.
        "Div" => a.checked_div(b),
        "Mod" => a.checked_rem_euclid(b),
        "Pow" => a.checked_pow(u32::try_from(b).ok()?),
        "Max" => Some(a.max(b)),
        "Min" => Some(a.min(b)),
        "And" => Some(i64::from(a != 0 && b != 0)),
        "Or" => Some(i64::from(a != 0 || b != 0)),
        "Equal" => Some(i64::from(a == b)),
        "Less" => Some(i64::from(a < b)),
        "Greater" => Some(i64::from(a > b)),
        "LessOrEqual" => Some(i64::from(a <= b)),
        "GreaterOrEqual" => Some(i64::from(a >= b)),
        _ => None,
    }
}

#[expect(clippy::float_cmp, reason = "ONNX compares for equality")]
fn compared(operator: &str, a: f64, b: f64) -> Option<bool> {
    Some(match operator {
        "Equal" => a == b,
        "Less" => a < b,
        "Greater" => a > b,
        "LessOrEqual" => a <= b,
        "GreaterOrEqual" => a >= b,
        _ => return None,
    })
}

fn float(operator: &str, a: f64, b: f64) -> Option<f64> {
    Some(match operator {
        "Add" => a + b,
        "Sub" => a - b,
        "Mul" => a * b,
        "Div" => a / b,
        "Mod" => a % b,
        "Pow" => a.powf(b),
        "Max" => a.max(b),
        "Min" => a.min(b),
        _ => return None,
    })
}

fn unary(node: &Node, x: &Fact) -> Option<Fact> {
    let known = x.known.as_ref()?;
    if node.operator == "Cast" {
        let to = DType::of_onnx(i32::try_from(node.int("to", 0)).ok()?)?;
        let known = match (known, to.is_floating_point()) {
            (Known::Ints(_), true) => Known::Floats(known.floats()),
            (Known::Floats(floats), false) => {
                Known::Ints(floats.iter().map(|v| v.trunc() as i64).collect())
            }
            _ => known.clone(),
        };
        return Some(Fact { dtype: to, dims: x.dims.clone(), known: Some(known) });
    }
    let known = match (known, node.operator.as_str()) {
        (Known::Ints(v), "Neg") => Known::Ints(v.iter().map(|v| v.saturating_neg()).collect()),
        (Known::Ints(v), "Abs") => Known::Ints(v.iter().map(|v| v.saturating_abs()).collect()),
        (Known::Ints(v), "Not") => Known::Ints(v.iter().map(|v| i64::from(*v == 0)).collect()),
        (Known::Floats(v), operator) => {
            let of: fn(f64) -> f64 = match operator {
                "Neg" => |v| -v,
                "Abs" => f64::abs,
                "Sqrt" => f64::sqrt,
                "Reciprocal" => f64::recip,
                "Floor" => f64::floor,
                "Ceil" => f64::ceil,
                _ => return None,
            };
            Known::Floats(v.iter().map(|v| of(*v)).collect())
        }
        _ => return None,
    };
    Some(x.clone().with(known))
}

fn choice(condition: &Fact, a: &Fact, b: &Fact) -> Option<Fact> {
    let (dims, values) = spread(&[condition, a, b])?;
    let [Known::Ints(condition), first, second] = values.as_slice() else { return None };
    let picks = |a: &[i64], b: &[i64]| -> Vec<i64> {
        let pairs = a.iter().zip(b);
        condition.iter().zip(pairs).map(|(c, (a, b))| if *c != 0 { *a } else { *b }).collect()
    };
    let known = match (first, second) {
        (Known::Ints(a), Known::Ints(b)) => Known::Ints(picks(a, b)),
        _ => {
            let (a, b) = (first.floats(), second.floats());
            let pairs = a.iter().zip(&b);
            let picked =
                condition.iter().zip(pairs).map(|(c, (a, b))| if *c != 0 { *a } else { *b });
            Known::Floats(picked.collect())
        }
    };
    Some(Fact { dtype: a.dtype, dims, known: Some(known) })
}

/// Values at these indices of an axis.
fn taken(x: &Fact, axis: usize, indices: &[i64], middle: &[i64]) -> Option<Fact> {
    let size = *x.dims.get(axis)?;
    let outer: i64 = x.dims[..axis].iter().product();
    let inner: i64 = x.dims[axis + 1..].iter().product();
    let dims = [&x.dims[..axis], middle, &x.dims[axis + 1..]].concat();
    if !is_small(&dims) {
        return None;
    }
    let mut at = Vec::new();
    for o in 0..outer {
        for &index in indices {
            let index = if index < 0 { index.checked_add(size)? } else { index };
            if !(0..size).contains(&index) {
                return None;
            }
            at.extend((0..inner).map(|i| ((o * size + index) * inner + i) as usize));
        }
    }
    let known = x.known.as_ref()?.at(&at)?;
    Some(Fact { dtype: x.dtype, dims, known: Some(known) })
}

fn gather(node: &Node, x: &Fact, indices: &Fact) -> Option<Fact> {
    let axis = x.axis(node.int("axis", 0)).ok()?;
    taken(x, axis, indices.known_ints()?, &indices.dims)
}

fn slice(node: &Node, x: &Fact, operands: &[Option<&Fact>; 4]) -> Option<Fact> {
    let ints = |at: usize, attribute: &str| match operands[at] {
        Some(fact) => fact.known_ints().map(<[i64]>::to_vec),
        None => node.ints(attribute),
    };
    let (starts, ends) = (ints(0, "starts")?, ints(1, "ends")?);
    let axes = ints(2, "axes").unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = ints(3, "steps").unwrap_or_else(|| vec![1; starts.len()]);
    let mut result = x.clone();
    for (((start, end), axis), step) in starts.iter().zip(&ends).zip(&axes).zip(&steps) {
        let axis = x.axis(*axis).ok()?;
        let indices = sliced(result.dims[axis], *start, *end, *step)?;
        result = taken(&result, axis, &indices, &[indices.len() as i64])?;
    }
    Some(result)
}

/// The indices of a slice (ONNX `Slice`, as NumPy slices).
fn sliced(size: i64, start: i64, end: i64, step: i64) -> Option<Vec<i64>> {
    let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let wrap = |at: i64| {
        let at = if at < 0 { at.saturating_add(size) } else { at };
        at.clamp(low, high)
    };
    if step == 0 || size > MAX_KNOWN as i64 {
        return None;
    }
    let (mut at, end) = (wrap(start), wrap(end));
    let mut indices = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        indices.push(at);
        at = at.checked_add(step)?;
    }
    Some(indices)
}

fn concat(node: &Node, all: &[&Fact]) -> Option<Fact> {
    let first = *all.first()?;
    let axis = first.axis(node.int("axis", 0)).ok()?;
    if first.rank() != 1 || all.iter().any(|fact| fact.rank() != 1) || axis != 0 {
        return None;
    }
    let known = if all.iter().all(|fact| matches!(fact.known, Some(Known::Ints(_)))) {
        Known::Ints(all.iter().filter_map(|fact| fact.known_ints()).flatten().copied().collect())
    } else {
        Known::Floats(
            all.iter().filter_map(|fact| Some(fact.known.as_ref()?.floats())).flatten().collect(),
        )
    };
    let dims = vec![known.len() as i64];
    is_small(&dims).then_some(Fact { dtype: first.dtype, dims, known: Some(known) })
}

fn split(node: &Node, x: &Fact, sizes: Option<&Fact>) -> Option<Vec<Fact>> {
    let axis = x.axis(node.int("axis", 0)).ok()?;
    let sizes = match sizes {
        Some(fact) => fact.known_ints()?.to_vec(),
        None => node.ints("split")?,
    };
    let mut start: i64 = 0;
    let mut parts = Vec::new();
    for size in sizes {
        let end = start.checked_add(size)?;
        let indices = sliced(x.dims[axis], start, end, 1)?;
        parts.push(taken(x, axis, &indices, &[indices.len() as i64])?);
        start = end;
    }
    Some(parts)
}

fn resized(node: &Node, x: &Fact, operand: Option<&Fact>) -> Option<Fact> {
    let given = match operand {
        Some(fact) => Some(fact.known_ints()?.to_vec()),
        None => node.ints(if node.operator == "Reshape" { "shape" } else { "axes" }),
    };
    let dims = match node.operator.as_str() {
        "Squeeze" => squeezed(&x.dims, given.as_deref())?,
        "Unsqueeze" => unsqueezed(&x.dims, &given?)?,
        _ => reshaped(&x.dims, &given?, node.int("allowzero", 0) == 1).ok()?,
    };
    Some(Fact { dims, ..x.clone() })
}

fn transposed(node: &Node, x: &Fact) -> Option<Fact> {
    let rank = x.rank();
    let order = node.ints("perm").unwrap_or_else(|| (0..rank as i64).rev().collect());
    let order: Vec<usize> = order.iter().map(|a| place(*a, rank).ok()).collect::<Option<_>>()?;
    if (0..rank).any(|axis| !order.contains(&axis)) || order.len() != rank {
        return None;
    }
    let dims: Vec<i64> = order.iter().map(|&axis| x.dims[axis]).collect();
    let stride = |axis: usize| x.dims[axis + 1..].iter().product::<i64>();
    let count = dims.iter().product::<i64>();
    let place_of = |flat: i64| {
        let (mut rest, mut at) = (flat, 0);
        for (&axis, &size) in order.iter().zip(&dims).rev() {
            at += rest % size * stride(axis);
            rest /= size;
        }
        at as usize
    };
    let known = x.known.as_ref()?.at(&(0..count).map(place_of).collect::<Vec<_>>())?;
    Some(Fact { dtype: x.dtype, dims, known: Some(known) })
}

fn range(start: &Fact, end: &Fact, step: &Fact) -> Option<Fact> {
    let (start, end, step) =
        (start.known_ints()?.first()?, end.known_ints()?.first()?, step.known_ints()?.first()?);
    let count = (end.checked_sub(*start)?).checked_div(*step)?;
    if count > MAX_KNOWN as i64 {
        return None;
    }
    let mut values = Vec::new();
    let mut at = *start;
    while (*step > 0 && at < *end) || (*step < 0 && at > *end) {
        values.push(at);
        at = at.checked_add(*step)?;
    }
    Some(Fact::ints(vec![values.len() as i64], values))
}

fn constant_of_shape(node: &Node, shape: &Fact) -> Option<Fact> {
    let dims = shape.known_ints()?.to_vec();
    // Larger ones are tensors: masks.
    if !is_small(&dims) || dims.iter().any(|d| *d < 0) || dims.len() > 1 {
        return None;
    }
    let count = dims.iter().product::<i64>() as usize;
    let (dtype, known) = match node.tensor("value") {
        None => (DType::F32, Known::Floats(vec![0.0; count])),
        Some(fact) => {
            let known = match fact.known.as_ref()? {
                Known::Ints(v) => Known::Ints(vec![*v.first()?; count]),
                Known::Floats(v) => Known::Floats(vec![*v.first()?; count]),
            };
            (fact.dtype, known)
        }
    };
    Some(Fact { dtype, dims, known: Some(known) })
}

fn expand(x: &Fact, to: &Fact) -> Option<Fact> {
    let dims = broadcast([x.dims.as_slice(), to.known_ints()?]).ok()?;
    // A constant of more dimensions is a tensor of the model.
    if !is_small(&dims) || dims.len() > 1 || dims.iter().any(|d| *d < 0) {
        return None;
    }
    let known = x.known.as_ref()?.at(&places(&dims, &x.dims))?;
    Some(Fact { dtype: x.dtype, dims, known: Some(known) })
}

fn reduced(node: &Node, x: &Fact) -> Option<Fact> {
    let Known::Ints(values) = x.known.as_ref()? else { return None };
    if x.rank() > 1 {
        return None;
    }
    let value = match node.operator.as_str() {
        "ReduceProd" => values.iter().try_fold(1_i64, |p, v| p.checked_mul(*v))?,
        "ReduceSum" => values.iter().try_fold(0_i64, |s, v| s.checked_add(*v))?,
        "ReduceMax" => *values.iter().max()?,
        _ => *values.iter().min()?,
    };
    let keeps = node.int("keepdims", 1) == 1 && x.rank() == 1;
    let fact = Fact::ints(if keeps { vec![1] } else { Vec::new() }, vec![value]);
    Some(Fact { dtype: x.dtype, ..fact })
}
